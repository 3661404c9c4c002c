#pragma once

#include <map>
#include <string>

#include "core/plan/grouping.h"

namespace fusion {

/// How hard the planner looks. The defaults are what requests get; tools and tests ask for others.
struct SearchLimits {
  /// Ops that are solved exactly: a program of so many, and each part of a larger one that is
  /// looked at again. At most 16.
  int exact_ops = 10;
  int window_ops = 6;
};

/// Chooses groups of loop ops so that the sum of their estimated times is least, or with high
/// memory pressure the bytes they move. `nodes` is the baseline, one group a node: nodes in `alone`
/// stay as they are there, and with high compute pressure all groups are made of whole ones.
///
/// A program of few ops is solved exactly. Of a larger one, groups grown along edges (GrowGroups)
/// are improved until no change of two or three neighbours gains: joining them, moving ops from one
/// to another, cutting them, solving a few ops of them exactly. Equal parts share their estimates
/// (GroupEvaluator). Deterministic: ties break on numbers.
absl::StatusOr<Grouping> SearchGroups(const Grouping& nodes, const PlanOptions& options,
                                      const std::map<NodeId, std::string>& alone,
                                      const SearchLimits& limits, GroupEvaluator* evaluator);

}  // namespace fusion
