#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/plan/cost/evaluator.h"
#include "core/plan/rules/registered.h"
#include "core/plan/rules/seen_graph.h"
#include "core/plan/sets/grouping.h"

namespace fusion {

/// The result of matching registered kernels in one graph.
struct RegisteredOutcome {
  std::vector<PlanFallback> fallbacks;  // places of kernels that must not run
  /// For the server's operator: "registered kernel "leaky" does not run at ...: ...".
  std::vector<std::string> notes;
};

/// Nodes of `seen.graph` that a kernel may compute according to the graph alone: conditions on the
/// cost of generated code count as true. Nodes in `unfused_nodes` (nodes of `seen.request`) are in
/// no match. A kernel with too many matches does not run and is no error; otherwise fails as
/// MatchRules does.
absl::StatusOr<std::set<NodeId>> NodesOfRegistered(
    const SeenGraph& seen, const DeviceSpec& device, const RegisteredKernels& kernels,
    const std::map<NodeId, std::string>& unfused_nodes);

/// Makes `evaluator` weigh registered kernels wherever they fit. Returns `start` with the nodes of
/// each match of a forced kernel merged to one group. `nodes`: one group per node; `start`: the
/// result of FollowRules. Kernels in `unused` (name -> why) do not run; their places become
/// fallbacks. Any other match that cannot run, and a kernel with too many matches, gives a note.
/// `unfused_nodes` as in NodesOfRegistered. Adds to `outcome`. CheckRuleOps must hold for each
/// kernel's rule. Fails only as the evaluator does. Deterministic.
absl::StatusOr<Grouping> FollowRegistered(const SeenGraph& seen, const Grouping& nodes,
                                          Grouping start, const RegisteredKernels& kernels,
                                          const std::map<std::string, std::string>& unused,
                                          const std::map<NodeId, std::string>& unfused_nodes,
                                          GroupEvaluator* evaluator, RegisteredOutcome* outcome);

}  // namespace fusion
