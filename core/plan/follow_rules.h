#pragma once

#include <map>
#include <string>

#include "core/plan/grouping.h"
#include "core/plan/rule_match.h"
#include "core/plan/seen_graph.h"

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
                                     const Rules& rules, const std::map<NodeId, std::string>& alone,
                                     GroupEvaluator* evaluator);

/// What the nodes of a match are as one kernel and as several (`by_node`: one kernel a node), as
/// AskKernel answers.
absl::StatusOr<std::optional<MatchTerms>> TermsOfMatch(const SeenGraph& seen,
                                                       const std::vector<NodeId>& match,
                                                       const Grouping& by_node,
                                                       GroupEvaluator* evaluator);

}  // namespace fusion
