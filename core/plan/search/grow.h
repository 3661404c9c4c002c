#pragma once

#include <map>
#include <string>

#include "core/plan/cost/evaluator.h"
#include "core/plan/sets/grouping.h"

namespace fusion {

/// Grows groups along edges from `start` by estimated gain until no merge gains: the greedy
/// expansion that SearchGroups begins with. Nodes in `unfused_nodes` are left as they are.
absl::StatusOr<Grouping> GrowGroups(const Grouping& start,
                                    const std::map<NodeId, std::string>& unfused_nodes,
                                    GroupEvaluator* evaluator);

/// For high compute pressure: groups of `grown` whose speed-up over their parts in `start`, of
/// which they are made, does not justify them fall back to these.
absl::StatusOr<Grouping> DissolveSlowGroups(const Grouping& grown, const Grouping& start,
                                            GroupEvaluator* evaluator);

}  // namespace fusion
