#pragma once

#include "core/base/threads/cancel.h"
#include "core/plan/cost/evaluator.h"
#include "core/schedule/tiles/candidates.h"

namespace fusion {

/// The best schedule of a group by estimate, with its tiling.
struct BestSchedule {
  Lowered lowered;
  LockedTiling tiling;
  Estimate estimate;
};
/// FailedPrecondition with the refusal if the group has no schedule; otherwise fails only as
/// `cancel` (may be null) says.
absl::StatusOr<BestSchedule> FindBestSchedule(const FusionGroup& group, const DeviceSpec& device,
                                              const CandidateOptions& options,
                                              const CancelToken* cancel);

/// Choices in two phases (split-K): a reduced dim is split between units that the best schedule of
/// the whole group leaves idle. `best` is the estimate of that schedule. `parts` of a choice are
/// the phases, `source` says where each param comes from; values have the numbers of `group`.
/// `program` and `lowered.params` are not set: the evaluator fills them. Empty if no unit is idle,
/// for bitwise plans, or if two phases cannot be faster. Fails only as `cancel` (may be null) says.
absl::StatusOr<std::vector<std::shared_ptr<GroupChoice>>> SplitChoices(
    const FusionGroup& group, const DeviceSpec& device, const CandidateOptions& options,
    const Estimate& best, const CancelToken* cancel);

/// The fastest of SplitChoices, if its estimate is below `best`; null otherwise.
absl::StatusOr<std::shared_ptr<GroupChoice>> ChooseSplit(const FusionGroup& group,
                                                         const DeviceSpec& device,
                                                         const CandidateOptions& options,
                                                         const Estimate& best,
                                                         const CancelToken* cancel);

/// The choice for a group made of its two phases (SplitGroup), in the form of SplitChoices.
/// `parts`: the dim that was split and the number of parts. FailedPrecondition if the phases cannot
/// be joined (PutInPhases).
absl::StatusOr<std::shared_ptr<GroupChoice>> JoinPhases(
    const FusionGroup& group, LockedTile parts,
    std::vector<std::shared_ptr<const GroupChoice>> phases, const DeviceSpec& device);

}  // namespace fusion
