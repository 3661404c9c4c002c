#pragma once

#include "core/graph/program/program.h"

namespace fusion {

/// The body of a repeat as a graph of its own: its nodes are the steps of `loop.source` that are no
/// constants, so that step s (LoopOp::step) is node s - 1; its tensors are the values of that, as
/// Value::tensor says of the body's. Nothing has a name. Weights are what is known before the first
/// run. `loop.source` is set. Fails as GraphBuilder does, for a body that is none of an imported
/// model.
absl::StatusOr<Graph> BodyGraph(const ProgramLoop& loop);

}  // namespace fusion
