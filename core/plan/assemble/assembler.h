#pragma once

#include <vector>

#include "core/plan/cost/evaluator.h"
#include "core/plan/sets/grouping.h"
#include "core/plan/sets/planned_model.h"

namespace fusion {

/// Turns a grouping into the kernels, launches, tensors and totals of `model`, whose program is
/// set: kernels without repeats, packed weights made once, memory reused, bodies of loops where
/// they run. `evaluator` has a schedule for every launch. Fails as its cancel token says and as
/// AddLoopTensors, naming the node.
absl::Status Assemble(const Graph& graph, ProgramOf of, const Grouping& grouping,
                      GroupEvaluator* evaluator, PlannedModel* model);

}  // namespace fusion
