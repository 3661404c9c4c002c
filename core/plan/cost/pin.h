#pragma once

#include <vector>

#include "core/bundle/plan_lock.h"
#include "core/plan/cost/evaluator.h"
#include "core/plan/sets/grouping.h"
#include "core/plan/sets/planned_model.h"
#include "core/schedule/lower/lower.h"

namespace fusion {

/// The dim of that name, which `field` of a lock gives: InvalidArgument, naming both, if there is
/// none.
absl::StatusOr<DimId> DimOf(std::string_view field, const std::string& name, const Smg& smg);

/// A choice in words that a lock can hold.
LockedCut CutOf(const FusionGroup& group, const Choice& choice);

/// Inverse of CutOf, for a cut that nobody vouches for: InvalidArgument, naming the field, if it
/// does not fit the group or the device (CheckChoice). `use`: as in PlanLock.
absl::StatusOr<Choice> ChoiceFrom(const LockedCut& cut, const FusionGroup& group,
                                  const DeviceSpec& device, bool bitwise,
                                  LockUse use = LockUse::kAsIs);

/// The groups of `lock`, which nobody vouches for, in its order, and which of them are phases of
/// one launch; `evaluator` then has the choices of the lock for them. InvalidArgument, naming the
/// field ("lock.groups[3].ops[1]: ..."), unless they hold every loop op of the evaluator's program
/// once, run one after the other, and have schedules.
absl::StatusOr<Grouping> PinGroups(const PlanLock& lock, GroupEvaluator* evaluator);

/// The groups and cuts of a plan, and nothing else of a lock.
PlanLock DecisionsOf(const PlannedModel& model);
/// The same, to be followed by other graphs.
std::shared_ptr<const PlanLock> LockFor(const PlannedModel& model, LockUse use);

}  // namespace fusion
