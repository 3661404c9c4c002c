#pragma once

#include <functional>
#include <vector>

#include "core/plan/search/plan_weigher.h"

namespace fusion {

/// Groups of a whole plan, in the order in which they run, and what it takes.
struct WeighedGroups {
  std::vector<std::vector<LoopId>> groups;
  PlanPoint point;
  std::vector<bool> follows = {};  // as Grouping::follows
};

/// Plans between two: puts the groups of `other` in the place of those of `base`, as few ops at a
/// time as both have in groups of their own, equal parts (layers) at once, and keeps what `better`
/// prefers to what was there. `other` holds the same ops. Looks at so many parts only as a bound on
/// time allows. Deterministic; fails only as the evaluator's cancel token says.
absl::StatusOr<WeighedGroups> InterpolatePlans(
    WeighedGroups base, const std::vector<std::vector<LoopId>>& other,
    const std::function<bool(const PlanPoint& fresh, const PlanPoint& old)>& better,
    GroupEvaluator* evaluator, PlanWeigher* weigher);

}  // namespace fusion
