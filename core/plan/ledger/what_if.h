#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/plan/cost/evaluator.h"

namespace fusion {

// The changes that would turn a verdict, smallest first. Pure.

/// What makes two kernels that are as fast as one, or faster, worth joining: a dearer launch, a
/// slower or faster memory, or a faster kernel. From the terms of the estimates: with them the gain
/// would be just above kMinGainUs, if each kernel stays cut as it is.
std::vector<WhatIf> GainWhatIfs(const GroupVerdict& first, const GroupVerdict& second,
                                const GroupVerdict& together, const DeviceSpec& device);

/// The same where rules weigh the times: another factor, or a faster kernel.
std::vector<WhatIf> WeighedWhatIfs(const GroupVerdict& first, const GroupVerdict& second,
                                   const GroupVerdict& together);

/// What gives a group a place on chip.
std::vector<WhatIf> FitWhatIfs(const FitProbe& probe);

/// How much longer one kernel may take before several are as fast.
std::vector<WhatIf> SlackWhatIfs(double together_us, double apart_us);

/// Finds them for entries of a ledger whose verdict and terms are set. What it is made from
/// outlives it. Fails only as the evaluator does.
class WhatIfFinder {
 public:
  explicit WhatIfFinder(GroupEvaluator* evaluator)
      : evaluator_(*evaluator), program_(evaluator->program()) {}

  /// Those that follow from the terms, the device and the limits. Nothing for kSuperseded, which
  /// the rest of the plan decides.
  absl::Status SetKnown(const std::vector<LoopId>& first, const std::vector<LoopId>& second,
                        const Refusal& refusal, PlanDecision* entry);

  /// Those that take trying, for two sides without a gain or a schedule: a result that is needed
  /// nowhere else, and parts of the sides. Takes as long as some ten evaluations.
  absl::Status AddTried(const std::vector<LoopId>& first, const std::vector<LoopId>& second,
                        const Refusal& refusal, PlanDecision* entry);

 private:
  /// The values that `second` reads of `first`, ascending.
  std::set<ValueId> Passed(const std::vector<LoopId>& first,
                           const std::vector<LoopId>& second) const;
  int64_t BytesBetween(const std::vector<LoopId>& first, const std::vector<LoopId>& second) const;
  /// What became of both if no rule forbade it; also the terms of both as one.
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
