#pragma once

#include <map>
#include <string>

#include "core/plan/cost/evaluator.h"
#include "core/plan/rules/rule_match.h"
#include "core/plan/rules/seen_graph.h"
#include "core/plan/sets/grouping.h"

namespace fusion {

/// Makes `evaluator` apply the rules wherever they match in `seen.graph`. `unfused_nodes` are nodes
/// of `seen.request`. Returns the groups with forced nodes merged: each forced set of `nodes` (one
/// group per node) becomes one group, with everything on paths within it.
///
/// FailedPrecondition if no kernel can hold a forced set, also because a node of it is in
/// `unfused_nodes`. It names the rules, the nodes (payload kFailedNode; nodes of a body by their
/// operators and the node that repeats it) and the refusal. InvalidArgument as CheckRuleOps,
/// ResourceExhausted as MatchRules; otherwise fails as the evaluator does. Deterministic.
absl::StatusOr<Grouping> FollowRules(const SeenGraph& seen, const Grouping& nodes,
                                     const Rules& rules,
                                     const std::map<NodeId, std::string>& unfused_nodes,
                                     GroupEvaluator* evaluator);

/// The terms of a match for AskKernel; nullopt if no kernel can hold its nodes. `by_node`: one
/// group per node. Fails as the evaluator does.
absl::StatusOr<std::optional<MatchTerms>> TermsOfMatch(const SeenGraph& seen,
                                                       const std::vector<NodeId>& match,
                                                       const Grouping& by_node,
                                                       GroupEvaluator* evaluator);

}  // namespace fusion
