#pragma once

#include "core/base/threads/cancel.h"
#include "core/plan/cost/evaluator.h"
#include "core/schedule/tiles/candidates.h"

namespace fusion {

/// The best schedule of a group by estimate. The status says why there is none; a cancelled search
/// ends as its token says.
struct BestSchedule {
  Lowered lowered;
  LockedCut cut;
  Estimate estimate;
};
absl::StatusOr<BestSchedule> FindBestSchedule(const FusionGroup& group, const DeviceSpec& device,
                                              const CandidateOptions& options,
                                              const CancelToken* cancel);

/// Choices in two phases: a reduced dim is split between units that the best schedule of the whole,
/// whose estimate is `best`, leaves idle. `parts` are the phases; `source` says where each param
/// comes from, and their values have the numbers of `group`. None if no unit is idle.
absl::StatusOr<std::vector<std::shared_ptr<GroupChoice>>> SplitChoices(
    const FusionGroup& group, const DeviceSpec& device, const CandidateOptions& options,
    const Estimate& best, const CancelToken* cancel);

/// The best of those whose estimate is below `best`. Null if there is none.
absl::StatusOr<std::shared_ptr<GroupChoice>> ChooseSplit(const FusionGroup& group,
                                                         const DeviceSpec& device,
                                                         const CandidateOptions& options,
                                                         const Estimate& best,
                                                         const CancelToken* cancel);

/// The choice for a group that its two phases, of SplitGroup, make; `parts` says what was split.
/// As ChooseSplit gives it.
absl::StatusOr<std::shared_ptr<GroupChoice>> JoinPhases(
    const FusionGroup& group, LockedTile parts,
    std::vector<std::shared_ptr<const GroupChoice>> phases, const DeviceSpec& device);

}  // namespace fusion
