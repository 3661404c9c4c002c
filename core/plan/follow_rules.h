#pragma once

#include <map>
#include <string>

#include "core/plan/grouping.h"

namespace fusion {

/// Lets `evaluator` follow the rules wherever they hold in `graph`, and puts together what they
/// force: groups of `nodes` (one a node) become one group, with all that lies on the way between
/// them.
///
/// FailedPrecondition where no kernel can hold what is forced: names the rules, the nodes (as
/// kFailedNode says) and the refusal. ResourceExhausted as MatchRules; else fails as the evaluator
/// does. Deterministic.
absl::StatusOr<Grouping> FollowRules(const Graph& graph, const Grouping& nodes, const Rules& rules,
                                     const std::map<NodeId, std::string>& alone,
                                     GroupEvaluator* evaluator);

}  // namespace fusion
