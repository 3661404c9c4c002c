#pragma once

#include "core/graph/program/program.h"

namespace fusion {

/// Places values of a program in the caller's memory. Values of Graph::bound_strides get strides;
/// copies are added where a tensor must be dense. Graph::shared_buffers become shared memory of the
/// program.
///
/// That an output holds an input's elements followed by new ones is derived from the loop bodies,
/// whatever ops they came from. Its first rows must be the input's elements, seen through ops that
/// only move elements. The body that computes the output is restricted to the other rows and writes
/// those:
///
///   %5 = Concat : f32[1,2,6,8] = map(%1[..] where d2 in [0, 5], %4[..] where d2 in [5, 6]) : ...
///
/// becomes, with %1 and %5 in memory with room,
///
///   %5 = Concat : f32[1,2,1,8] = map(%4[..]) in %6 from 5
///   %6 = Concat : f32[1,2,6,8] = append %5 behind %1
///
/// InvalidArgument, naming input, output and the obstacle, if that fails.
absl::Status ShareRows(const Graph& graph, Program* program);

}  // namespace fusion
