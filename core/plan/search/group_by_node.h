#pragma once

#include "core/graph/graph.h"
#include "core/plan/cost/evaluator.h"
#include "core/plan/sets/grouping.h"

namespace fusion {

/// One group a graph node: the baseline. What a node computes from weights alone is a group of its
/// own. A node whose ops have no common schedule is split into single ops, one of more than
/// kMostOps ops into several groups. Unimplemented, naming the node,
/// if an op has no schedule at all or too many inputs.
absl::StatusOr<Grouping> GroupByNode(const Graph& graph, GroupEvaluator* evaluator);

}  // namespace fusion
