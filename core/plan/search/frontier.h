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

/// PlanPoint::name: how whole plans are found.
inline constexpr char kSearchPoint[] = "search";    // SearchGroups for time
inline constexpr char kGreedyPoint[] = "greedy";    // GrowGroups
inline constexpr char kOpByOpPoint[] = "op-by-op";  // a kernel a node
inline constexpr char kLeastMemoryPoint[] =
    "least-memory";  // SearchGroups for memory, interpolated
inline constexpr char kQuickCompilePoint[] = "quick-compile";
inline constexpr char kAllInOnePoint[] = "all-in-one";  // JoinInTurn of the one that was chosen
inline constexpr char kLockPoint[] = "lock";

/// Peaks this part above the least are as good as it: of these plans the fastest is chosen.
inline constexpr double kNearPeak = 0.01;

/// A plan, and those it was chosen from.
struct ChosenPlan {
  Grouping grouping;
  std::vector<PlanPoint> frontier;  // as Plan::frontier
};

/// Weighs whole plans and takes the one that the hints ask for: of least peak bytes with high
/// memory pressure, else of least time. With high compute pressure only plans without recomputation
/// are weighed whose groups are kPressureSpeedup times as fast as their nodes. The plans are
/// `start` (one kernel a node, or what FollowRules made of that), GrowGroups and SearchGroups from
/// there; with high memory pressure or PlanOptions::frontier the one of least memory; with the
/// latter also the one that compiles soonest. With Hints::low_latency, and without high memory
/// pressure, the launches of the plan chosen so far are joined to whole layers, and that is taken
/// if it is faster; PlanOptions::frontier only weighs it. Nodes in `unfused_nodes` stay as they are
/// in `start`. Deterministic; fails only as the evaluator's cancel token says.
absl::StatusOr<ChosenPlan> ChoosePlan(const Grouping& start, const PlanOptions& options,
                                      const std::map<NodeId, std::string>& unfused_nodes,
                                      GroupEvaluator* evaluator);

/// `grouping` where there is no choice: its frontier is one point of that name and reason.
absl::StatusOr<ChosenPlan> TakePlan(Grouping grouping, const char* name, std::string reason,
                                    GroupEvaluator* evaluator);

/// Without the points that others are as good as in everything; of equal ones the first stays. By
/// latency, of equal ones by peak bytes.
std::vector<PlanPoint> NonDominated(std::vector<PlanPoint> points);

}  // namespace fusion
