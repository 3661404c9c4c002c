#pragma once

#include <map>
#include <string>

#include "core/plan/cost/evaluator.h"
#include "core/plan/rules/rule_match.h"
#include "core/plan/rules/seen_graph.h"
#include "core/plan/sets/grouping.h"

namespace fusion {

/// Lets `evaluator` follow the rules wherever they hold in `seen.graph`, and puts together what
/// they force: groups of `nodes` (one a node) become one group, with all that lies on the way
/// between them.
///
/// FailedPrecondition where no kernel can hold what is forced: names the rules, the nodes (as
/// kFailedNode says; those of a body by their operators, and the node that repeats it) and the
/// refusal. ResourceExhausted as MatchRules; else fails as the evaluator
/// does. Deterministic.
absl::StatusOr<Grouping> FollowRules(const SeenGraph& seen, const Grouping& nodes,
                                     const Rules& rules,
                                     const std::map<NodeId, std::string>& unfused_nodes,
                                     GroupEvaluator* evaluator);

/// What the nodes of a match are as one kernel and as several (`by_node`: one kernel a node), as
/// AskKernel answers.
absl::StatusOr<std::optional<MatchTerms>> TermsOfMatch(const SeenGraph& seen,
                                                       const std::vector<NodeId>& match,
                                                       const Grouping& by_node,
                                                       GroupEvaluator* evaluator);

}  // namespace fusion
