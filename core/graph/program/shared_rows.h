#pragma once

#include "core/graph/program/program.h"

namespace fusion {

/// Places values of a program in the caller's memory: those of Graph::bound_strides get strides,
/// with copies for what must lie dense, and shared buffers of a graph (Graph::shared_buffers)
/// become such of its program. That an output
/// holds an input's elements and then new ones is derived from the loop bodies, whatever ops they
/// came from: its first rows must be the input's elements, seen through all that only moves them,
/// and what is left of the body that computes it, restricted to the others, writes those:
///
///   %5 = Concat : f32[1,2,6,8] = map(%1[..] where d2 in [0, 5], %4[..] where d2 in [5, 6]) : ...
///
/// becomes, with %1 and %5 in memory with room,
///
///   %5 = Concat : f32[1,2,1,8] = map(%4[..]) in %6 from 5
///   %6 = Concat : f32[1,2,6,8] = append %5 behind %1
///
/// InvalidArgument, naming input, output and what is in the way, if that fails.
absl::Status ShareRows(const Graph& graph, Program* program);

}  // namespace fusion
