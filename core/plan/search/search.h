#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/plan/cost/evaluator.h"
#include "core/plan/sets/grouping.h"

namespace fusion {

/// What a search makes least: the sum of the estimated times, or with `run_bytes` the bytes that
/// lie between kernels, of equally many the sum of the times. Then a kernel should hold no more
/// than `run_bytes` for itself (GroupVerdict::run_bytes): what is above weighs more than what lies
/// between kernels.
struct Objective {
  std::optional<int64_t> run_bytes;
};

/// How hard the planner looks. The defaults are what requests get; tools and tests ask for others.
struct SearchLimits {
  /// Parts of so many ops are solved exactly; at most 16.
  int window_ops = 8;
  /// Loop ops to make schedules for in search of what the bounds do not promise (see
  /// GroupEvaluator::scheduled_ops); what was estimated before costs nothing.
  int64_t effort_ops = 256;
};

/// Chooses groups of loop ops, as good by `objective` as it can find; times count as the
/// evaluator's rules weigh them. `nodes` says what moves as a whole, one group a node or what
/// FollowRules made of that: nodes in `unfused_nodes` stay as they are there, what rules force
/// stays together, and with high compute pressure all groups are made of whole ones.
///
/// Groups of `start` (GrowGroups, or what another search found) are improved until no change of two
/// or three neighbours gains: joining them, moving ops from one to another, cutting them, solving a
/// few ops of them exactly; neighbours are linked by a value, or run at about the same time and may
/// share a launch. First what gains by cheap bounds, then the rest within limits. Equal parts
/// (layers) share their estimates and are looked at once. Deterministic: ties break on numbers.
/// Joins of two groups that were taken, or estimated and refused, are added to `start.considered`,
/// refused ones once.
absl::StatusOr<Grouping> SearchGroups(const Grouping& nodes, const Grouping& start,
                                      const Objective& objective, const PlanOptions& options,
                                      const std::map<NodeId, std::string>& unfused_nodes,
                                      const SearchLimits& limits, GroupEvaluator* evaluator);

}  // namespace fusion
