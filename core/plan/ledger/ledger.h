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

/// The decision ledger of a plan, into `model->plan`: why every group is one kernel, why every two
/// of its groups of which one reads from the other are two, why near ones are that read the same
/// value, and what became of each candidate of `considered`. With the terms of both sides and of
/// the whole, and with the smallest change that would turn the verdict, worked out from the
/// estimates or by trying. Equal entries are one.
///
/// `model` is complete but for this; `by_node` are the sets of ops with one kernel a node. What
/// `evaluator` knows is used, what it does not know it is asked. Deterministic; fails only as its
/// cancel token says.
absl::Status WriteLedger(const Graph& graph, ProgramOf of,
                         const std::vector<std::vector<LoopId>>& by_node,
                         const std::vector<Considered>& considered, const PlanOptions& options,
                         const std::map<NodeId, std::string>& unfused_nodes,
                         GroupEvaluator* evaluator, PlannedModel* model);

}  // namespace fusion
