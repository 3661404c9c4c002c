#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/plan/cost/evaluator.h"

namespace fusion {

// The changes that would reverse a verdict, smallest first. Free functions are pure; any thread.

/// For two kernels that are as fast as one or faster: a more expensive launch, a slower or faster
/// memory, or a faster joint kernel. Computed from the terms of the estimates: the gain would be
/// just above kMinGainUs if every kernel kept its tiling.
std::vector<WhatIf> GainWhatIfs(const GroupVerdict& first, const GroupVerdict& second,
                                const GroupVerdict& together, const DeviceSpec& device);

/// The same if rules weigh the times: another factor, or a faster joint kernel.
std::vector<WhatIf> WeighedWhatIfs(const GroupVerdict& first, const GroupVerdict& second,
                                   const GroupVerdict& together);

/// Changes with which a group would fit on chip.
std::vector<WhatIf> FitWhatIfs(const FitProbe& probe);

/// How much longer one kernel may take before several are as fast.
std::vector<WhatIf> SlackWhatIfs(double together_us, double apart_us);

/// Finds what-ifs for ledger entries whose verdict and terms are set, and adds them to the entry.
/// `evaluator` must outlive it. Not thread-safe. Fails only as the evaluator does.
class WhatIfFinder {
 public:
  explicit WhatIfFinder(GroupEvaluator* evaluator)
      : evaluator_(*evaluator), program_(evaluator->program()) {}

  /// Sets the what-ifs that follow from the terms, the device and the limits. None for kSuperseded,
  /// which depends on the rest of the plan.
  absl::Status SetKnown(const std::vector<LoopId>& first, const std::vector<LoopId>& second,
                        const Refusal& refusal, PlanDecision* entry);

  /// Adds the what-ifs that are found by trying, for two sides without a gain or without a
  /// schedule: a result that no other op needs, and parts of the sides. Costs about ten
  /// evaluations.
  absl::Status AddTried(const std::vector<LoopId>& first, const std::vector<LoopId>& second,
                        const Refusal& refusal, PlanDecision* entry);

 private:
  /// The values that `second` reads from `first`.
  std::set<ValueId> Passed(const std::vector<LoopId>& first,
                           const std::vector<LoopId>& second) const;
  int64_t BytesBetween(const std::vector<LoopId>& first, const std::vector<LoopId>& second) const;
  /// Adds the verdict that both would have if no rule forbade it, and the terms of both as one
  /// kernel.
  absl::Status AddWithoutRule(const std::vector<LoopId>& first, const std::vector<LoopId>& second,
                              PlanDecision* entry);
  absl::Status AddOutsideWhatIfs(const std::vector<LoopId>& first,
                                 const std::vector<LoopId>& second, PlanDecision* entry);
  absl::Status AddPartWhatIfs(const std::vector<LoopId>& first, const std::vector<LoopId>& second,
                              PlanDecision* entry);

  GroupEvaluator& evaluator_;
  const Program& program_;
};

}  // namespace fusion
