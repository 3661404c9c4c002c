#pragma once

#include <vector>

#include "core/plan/cost/evaluator.h"
#include "core/plan/sets/grouping.h"
#include "core/plan/sets/planned_model.h"

namespace fusion {

/// Fills kernels, launches, tensors and totals of `model` from a grouping; model->program must be
/// set. Equal kernels are shared, weights are packed once, memory is reused, and bodies of loops
/// are inlined as PlanLoops. `evaluator`, for model->program, must have a schedule for every
/// launch; `graph` is the graph that the program or body is from. Fails as the evaluator's cancel
/// token says, and as AddLoopTensors, naming the node.
absl::Status Assemble(const Graph& graph, ProgramOf of, const Grouping& grouping,
                      GroupEvaluator* evaluator, PlannedModel* model);

}  // namespace fusion
