#pragma once

#include "core/graph/graph.h"
#include "core/plan/cost/evaluator.h"
#include "core/plan/sets/grouping.h"

namespace fusion {

/// The baseline: one group per graph node. Ops of a node on weights alone are a group of their own.
/// A node whose ops have no common schedule is split into single ops; a node of more than kMostOps
/// ops into several groups. Padding and the windows that read it are split if two kernels are
/// estimated to be faster. Unimplemented, naming the node (payload kFailedNode), if an op has no
/// schedule or too many inputs; otherwise fails as the evaluator does.
absl::StatusOr<Grouping> GroupByNode(const Graph& graph, GroupEvaluator* evaluator);

}  // namespace fusion
