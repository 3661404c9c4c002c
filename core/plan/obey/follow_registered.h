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

/// What became of registered kernels in one graph.
struct RegisteredOutcome {
  std::vector<PlanFallback> fallbacks;  // places of those that are not to be used
  /// "registered kernel "leaky" does not run at ...: ...", for the operator of the server.
  std::vector<std::string> notes;
};

/// Nodes of `seen.graph` that one of the kernels may compute, as far as the graph alone says: a
/// kernel whose conditions ask what generated code takes is taken to fulfil them. Nodes in
/// `unfused_nodes` are in no match. Fails only as MatchRules does, and not beyond its limits: a
/// kernel of so many places does not run.
absl::StatusOr<std::set<NodeId>> NodesOfRegistered(
    const SeenGraph& seen, const DeviceSpec& device, const RegisteredKernels& kernels,
    const std::map<NodeId, std::string>& unfused_nodes);

/// Lets `evaluator` weigh registered kernels wherever they fit, and makes what forced ones compute
/// one group of `start` each, which is made of groups of `nodes` (one a node). Kernels in `unused`
/// (name -> why) do not run; their places are fallbacks. Nodes in `unfused_nodes` are in no match.
/// Fails only as the evaluator does. Deterministic.
absl::StatusOr<Grouping> FollowRegistered(const SeenGraph& seen, const Grouping& nodes,
                                          Grouping start, const RegisteredKernels& kernels,
                                          const std::map<std::string, std::string>& unused,
                                          const std::map<NodeId, std::string>& unfused_nodes,
                                          GroupEvaluator* evaluator, RegisteredOutcome* outcome);

}  // namespace fusion
