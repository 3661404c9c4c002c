#pragma once

#include <functional>
#include <vector>

#include "core/plan/search/plan_weigher.h"

namespace fusion {

/// The groups of a whole plan in execution order, with their weights.
struct WeighedGroups {
  std::vector<std::vector<LoopId>> groups;
  PlanPoint point;
  std::vector<bool> follows = {};  // as Grouping::follows
};

/// Finds plans between two plans. Replaces groups of `base` by those of `other`, in the smallest
/// exchangeable sets of groups, and equal sets (layers) together; keeps each replacement for which
/// better(new point, old point) is true. `other` must hold the same ops. Tries a bounded number of
/// replacements. Deterministic; fails only as the evaluator's cancel token says.
absl::StatusOr<WeighedGroups> InterpolatePlans(
    WeighedGroups base, const std::vector<std::vector<LoopId>>& other,
    const std::function<bool(const PlanPoint& fresh, const PlanPoint& old)>& better,
    GroupEvaluator* evaluator, PlanWeigher* weigher);

}  // namespace fusion
