#pragma once

#include <vector>

#include "core/plan/evaluator.h"
#include "core/plan/planner.h"

namespace fusion {

/// Turns groups in an order that respects data flow into the kernels, launches, tensors and totals
/// of `model`, whose program is set: kernels without repeats, packed weights made once, memory
/// reused. `evaluator` has a schedule for every group. Fails only as its cancel token says.
absl::Status Assemble(const Graph& graph, const std::vector<std::vector<LoopId>>& groups,
                      GroupEvaluator* evaluator, PlannedModel* model);

}  // namespace fusion
