#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/bundle/options.h"
#include "core/graph/graph.h"
#include "core/plan/cost/evaluator.h"
#include "core/plan/sets/considered.h"
#include "core/plan/sets/planned_model.h"

namespace fusion {

/// Writes the decision ledger of a plan to `model->plan`. It has an entry for every group (why its
/// nodes are one kernel), every two groups with an edge between them (why they are two), near
/// groups that read the same value, and every candidate of `considered`. An entry has the terms of
/// both sides and of the whole, and the smallest change that would reverse the verdict, computed
/// from the estimates or found by trying. Equal entries are merged.
///
/// `model` must be complete except for the ledger. `by_node`: the groups with one kernel per node.
/// `evaluator` is used for what it has cached and evaluates the rest. Deterministic; fails only as
/// the evaluator's cancel token says.
absl::Status WriteLedger(const Graph& graph, ProgramOf of,
                         const std::vector<std::vector<LoopId>>& by_node,
                         const std::vector<Considered>& considered, const PlanOptions& options,
                         const std::map<NodeId, std::string>& unfused_nodes,
                         GroupEvaluator* evaluator, PlannedModel* model);

}  // namespace fusion
