#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/plan/cost/evaluator.h"
#include "core/plan/sets/grouping.h"

namespace fusion {

/// The search objective. Without `run_bytes`: the sum of estimated times. With `run_bytes`: the
/// bytes stored between kernels, then the sum of times; and a kernel should hold at most
/// `run_bytes` for itself (GroupVerdict::run_bytes), since bytes above that weigh more than bytes
/// between kernels.
struct Objective {
  std::optional<int64_t> run_bytes;
};

/// The effort of the search. Requests use the defaults; tools and tests set others.
struct SearchLimits {
  /// Sets of up to this many ops are solved exactly; at most 16.
  int window_ops = 8;
  /// Budget of loop ops to schedule while looking for gains that the bounds do not promise (see
  /// GroupEvaluator::scheduled_ops). Sets with a known estimate are free.
  int64_t effort_ops = 256;
};

/// Searches for the groups of loop ops with the best `objective`. Times count as the evaluator's
/// rules weigh them. `nodes` (one group per node, or the result of FollowRules) defines the units
/// that move as a whole: nodes in `unfused_nodes` stay as they are there, forced sets stay
/// together, and with high compute pressure groups consist of whole groups of `nodes`.
///
/// `start` (GrowGroups, or the result of another search) is improved until no change of two or
/// three neighbouring groups gains: joining them, moving ops between them, splitting them, or
/// solving a few ops exactly. Neighbours are linked by a value, or run at about the same time and
/// may share a launch. Changes that cheap bounds promise come first, then others within `limits`.
/// Equal parts (layers) share estimates and are searched once.
///
/// The result's `considered` are those of `start`, and each join of two groups that was accepted,
/// or estimated and refused; refused ones once. Deterministic: ties break on numbers. Fails only as
/// the evaluator's cancel token says.
absl::StatusOr<Grouping> SearchGroups(const Grouping& nodes, const Grouping& start,
                                      const Objective& objective, const PlanOptions& options,
                                      const std::map<NodeId, std::string>& unfused_nodes,
                                      const SearchLimits& limits, GroupEvaluator* evaluator);

}  // namespace fusion
