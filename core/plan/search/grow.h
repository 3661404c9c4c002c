#pragma once

#include <map>
#include <string>

#include "core/plan/cost/evaluator.h"
#include "core/plan/sets/grouping.h"

namespace fusion {

/// Greedy expansion: merges groups of `start` along edges by estimated gain until no merge gains.
/// SearchGroups starts from the result. Nodes in `unfused_nodes` stay as in `start`. Deterministic;
/// fails only as the evaluator's cancel token says.
absl::StatusOr<Grouping> GrowGroups(const Grouping& start,
                                    const std::map<NodeId, std::string>& unfused_nodes,
                                    GroupEvaluator* evaluator);

/// For high compute pressure: replaces each group of `grown` by the groups of `start` that it
/// consists of, unless it is more than kPressureSpeedup times as fast as these. Fails only as the
/// evaluator's cancel token says.
absl::StatusOr<Grouping> DissolveSlowGroups(const Grouping& grown, const Grouping& start,
                                            GroupEvaluator* evaluator);

}  // namespace fusion
