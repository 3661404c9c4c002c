#pragma once

#include "core/graph/program/program.h"

namespace fusion {

/// The body of a repeat as a graph of its own. Its nodes are the steps of `loop.source` without the
/// constants: step s (LoopOp::step) is node s - 1. Its tensors are the values of `loop.source`, to
/// which Value::tensor of the body refers. Names are empty. Inputs of the body that are known
/// before the first run become weights.
///
/// `loop.source` must be set. Fails as GraphBuilder does; bodies of imported models do not fail.
absl::StatusOr<Graph> BodyGraph(const ProgramLoop& loop);

}  // namespace fusion
