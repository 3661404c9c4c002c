#pragma once

#include <vector>

#include "core/bundle/plan.h"
#include "core/graph/program/program.h"
#include "core/plan/assemble/tensor_table.h"
#include "core/plan/cost/evaluator.h"

namespace fusion {

/// The tensors that a repeat adds to a plan.
struct LoopTensors {
  std::vector<int> of_body;  // by tensor of the body's plan: tensor of the outer plan
  std::vector<int> used;     // all tensors that must be alive while the loop runs
  PlanLoop loop;             // without its launches
  int places = 0;            // number of places of this loop; those of nested loops follow
};

/// Adds to `tensors` everything that the repeat `op` of `evaluator`'s program needs. `body` is the
/// plan of its body. Places (PlanLoop) are numbered from `first_place`. Adds the body's prepare
/// launches, but not its other launches. Unimplemented if the body packs a value that is no weight
/// of the outer program or that is also an output of it, or if it reads from a shared buffer.
absl::StatusOr<LoopTensors> AddLoopTensors(const LoopOp& op, const Plan& body, int first_place,
                                           const GroupEvaluator& evaluator, TensorTable* tensors);

/// A loop nested in the body's plan, renumbered as a loop of the outer plan. `first_place` as in
/// AddLoopTensors; `first_launch`: position of the body's first launch.
PlanLoop MovedLoop(const PlanLoop& loop, const LoopTensors& moved, int first_place,
                   int first_launch);

}  // namespace fusion
