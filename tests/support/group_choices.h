#pragma once

#include <vector>

#include "core/plan/cost/evaluator.h"

namespace fusion {

/// Ways to cut a set of loop ops of a program: those that the planner would weigh, and each dim
/// that may be streamed in tiles far shorter than a device would want, so that small tensors take
/// several. All have a schedule. Of ops that nothing connects also ways to put their parts side by
/// side. `evaluator` is of the program and has these `options`. Deterministic.
std::vector<LockedChoice> ChoicesOf(const std::vector<LoopId>& loops, const PlanOptions& options,
                                    const GroupEvaluator& evaluator);

}  // namespace fusion
