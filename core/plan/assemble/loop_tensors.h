#pragma once

#include <vector>

#include "core/bundle/plan.h"
#include "core/graph/program/program.h"
#include "core/plan/assemble/tensor_table.h"
#include "core/plan/cost/evaluator.h"

namespace fusion {

/// The tensors that a repeat brings into a plan.
struct LoopTensors {
  std::vector<int> of_body;  // of the plan, by tensor of the body's plan
  std::vector<int> used;     // all that are alive while it runs
  PlanLoop loop;             // without its launches
  int places = 0;            // that it has itself; those of loops within it come behind
};

/// Adds to `tensors` what the repeat `op` of `evaluator`'s program needs, whose body has the plan
/// `body`; its places are numbered from `first_place` on. Its prepare launches are added, its other
/// launches are not. Unimplemented if the body packs what is no weight here, a value that is also
/// an output of the program, or reads what lies in a shared buffer.
absl::StatusOr<LoopTensors> AddLoopTensors(const LoopOp& op, const Plan& body, int first_place,
                                           const GroupEvaluator& evaluator, TensorTable* tensors);

/// A loop of the body's plan as one of the plan.
PlanLoop MovedLoop(const PlanLoop& loop, const LoopTensors& moved, int first_place,
                   int first_launch);

}  // namespace fusion
