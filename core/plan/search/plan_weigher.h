#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/bundle/plan.h"
#include "core/plan/assemble/tensor_table.h"
#include "core/plan/cost/evaluator.h"

namespace fusion {

/// Computes latency, peak bytes and compile time of whole plans of one program. Tensors are placed
/// and kernels are counted as Assemble does, so the numbers equal those of the final plan. Work for
/// equal groups is shared. Not thread-safe. `evaluator` must outlive it.
class PlanWeigher {
 public:
  explicit PlanWeigher(GroupEvaluator* evaluator) : evaluator_(*evaluator) {}

  /// `groups` must have schedules and be in execution order; `follows` as Grouping::follows.
  /// Returns a point without a name, not chosen. Fails only as the evaluator's cancel token says.
  absl::StatusOr<PlanPoint> Weigh(const std::vector<std::vector<LoopId>>& groups,
                                  const std::vector<bool>& follows = {});

 private:
  struct Kernel {
    int64_t scratch_bytes = 0;  // of one thread
    int64_t workspace_bytes = 0;
    double compile_s = 0;
  };

  // The state while a plan is weighed.
  struct Weighing {
    PlanPoint point;
    TensorTable tensors;
    std::vector<bool> used;  // by kernel
  };

  absl::Status AddLoop(LoopId loop, const GroupVerdict& verdict, const GroupChoice& choice,
                       Weighing* weighing);
  void UseKernels(const GroupChoice& choice, Weighing* weighing);
  void AddLaunch(const std::vector<LoopId>& loops, const GroupVerdict& verdict,
                 const GroupChoice& choice, Weighing* weighing);
  int KernelOf(const Schedule& schedule);
  const std::vector<int>& KernelsOf(const GroupChoice& choice);

  GroupEvaluator& evaluator_;
  std::vector<Kernel> kernels_;
  std::map<std::string, int> kernel_of_;  // by the text of its schedule: equal texts are one kernel
  // By choice: positions in kernels_ of its own kernels and of those that pack weights for it. Only
  // for lookup: iteration order depends on addresses.
  std::map<const GroupChoice*, std::vector<int>> kernels_of_;
};

}  // namespace fusion
