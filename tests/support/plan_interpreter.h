#pragma once

#include <vector>

#include "core/plan/planner.h"

namespace fusion {

/// Runs a plan without compiling anything: every kernel on the schedule interpreter, on memory laid
/// out as the plan says, which begins full of NaN. What executors do, as slowly and plainly as
/// possible. `inputs` by graph input, `weights` by plan weight.
absl::StatusOr<std::vector<HostTensor>> InterpretPlan(const PlannedModel& model,
                                                      const std::vector<HostTensor>& inputs,
                                                      const std::vector<HostTensor>& weights);

/// One random tensor per input, and per weight, of a planned model.
struct PlanValues {
  std::vector<HostTensor> inputs;
  std::vector<HostTensor> weights;
};
PlanValues RandomPlanValues(const PlannedModel& model, uint64_t seed);

/// What the evaluator says the program of the plan computes, with the roundings that it has.
absl::StatusOr<std::vector<HostTensor>> EvaluateProgram(const PlannedModel& model,
                                                        const PlanValues& values);

/// What the evaluator says the graph computes; `graph` is the one that was planned.
absl::StatusOr<std::vector<HostTensor>> EvaluatePlanned(const Graph& graph,
                                                        const PlannedModel& model,
                                                        const PlanValues& values);

}  // namespace fusion
