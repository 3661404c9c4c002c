#pragma once

#include <vector>

#include "core/bundle/plan_lock.h"
#include "core/plan/cost/evaluator.h"
#include "core/plan/sets/grouping.h"
#include "core/plan/sets/planned_model.h"
#include "core/schedule/lower/lower.h"

namespace fusion {

/// The dim named `name`. InvalidArgument, naming `field` (a field of a lock) and `name`, if there
/// is none.
absl::StatusOr<DimId> DimOf(std::string_view field, const std::string& name, const Smg& smg);

/// The tiling of a choice in the form that locks store.
LockedTiling TilingOf(const FusionGroup& group, const Choice& choice);

/// Inverse of TilingOf, for an untrusted tiling. InvalidArgument, naming the field, if it does not
/// fit the group or the device (CheckChoice). `use` as in PlanLock.
absl::StatusOr<Choice> ChoiceFrom(const LockedTiling& tiling, const FusionGroup& group,
                                  const DeviceSpec& device, bool bitwise,
                                  LockUse use = LockUse::kAsIs);

/// The groups of an untrusted lock, in its order, with Grouping::follows. Afterwards `evaluator`
/// returns the lock's choices for them; call it before other evaluations (GroupEvaluator::Pin).
/// InvalidArgument, naming the field ("lock.groups[3].ops[1]: ..."), unless the groups hold every
/// loop op of the evaluator's program exactly once, can run one after the other, and have
/// schedules.
absl::StatusOr<Grouping> PinGroups(const PlanLock& lock, GroupEvaluator* evaluator);

/// A lock with only the groups and tilings of a plan.
PlanLock DecisionsOf(const PlannedModel& model);
/// The same as a lock for other graphs, which follow it as `use` says.
std::shared_ptr<const PlanLock> LockFor(const PlannedModel& model, LockUse use);

}  // namespace fusion
