#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/bundle/plan.h"
#include "core/plan/cost/evaluator.h"
#include "core/plan/cost/gain.h"
#include "core/plan/search/search.h"
#include "core/plan/sets/grouping.h"

namespace fusion {

/// Values of PlanPoint::name: how a whole plan was found.
inline constexpr char kSearchPoint[] = "search";    // SearchGroups for time
inline constexpr char kGreedyPoint[] = "greedy";    // GrowGroups
inline constexpr char kOpByOpPoint[] = "op-by-op";  // one kernel per node
inline constexpr char kLeastMemoryPoint[] =
    "least-memory";  // SearchGroups for memory, interpolated
inline constexpr char kQuickCompilePoint[] = "quick-compile";
inline constexpr char kAllInOnePoint[] = "all-in-one";  // JoinSequential of the chosen plan
inline constexpr char kLockPoint[] = "lock";

/// A peak within this fraction of the least peak counts as equal to it; of such plans the fastest
/// is chosen.
inline constexpr double kNearPeak = 0.01;

/// The chosen plan and the plans that it was weighed against.
struct ChosenPlan {
  Grouping grouping;
  std::vector<PlanPoint> frontier;  // as Plan::frontier
};

/// Weighs whole plans and returns the one that the hints select: least peak bytes with high memory
/// pressure, otherwise least time. With high compute pressure only plans count that recompute
/// nothing and whose groups are kPressureSpeedup times as fast as their nodes.
///
/// The weighed plans are `start` (one kernel per node, or the result of FollowRules), GrowGroups
/// and SearchGroups from there. With high memory pressure or PlanOptions::frontier also the plan of
/// least memory; with the latter also the plan that compiles soonest. Without high memory pressure,
/// Hints::low_latency or PlanOptions::frontier adds the plan chosen so far with its launches joined
/// to whole layers; it is chosen only with Hints::low_latency and only if it is faster.
///
/// Each group of `start` needs a schedule. Nodes in `unfused_nodes` stay as in `start`.
/// Deterministic; fails only as the evaluator's cancel token says.
absl::StatusOr<ChosenPlan> ChoosePlan(const Grouping& start, const PlanOptions& options,
                                      const std::map<NodeId, std::string>& unfused_nodes,
                                      GroupEvaluator* evaluator);

/// `grouping` without alternatives. The frontier is one point with this name and reason.
absl::StatusOr<ChosenPlan> TakePlan(Grouping grouping, const char* name, std::string reason,
                                    GroupEvaluator* evaluator);

/// The points that no other point equals or beats in every measure; of equal points the first
/// remains. Sorted by latency, then peak bytes.
std::vector<PlanPoint> NonDominated(std::vector<PlanPoint> points);

}  // namespace fusion
