#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/plan/grouping.h"
#include "core/plan/registered.h"
#include "core/plan/seen_graph.h"

namespace fusion {

/// What became of registered kernels in one graph.
struct RegisteredOutcome {
  std::vector<PlanFallback> fallbacks;  // places of those that are not to be used
  /// "registered kernel "leaky" does not run at ...: ...", for the operator of the server.
  std::vector<std::string> notes;
};

/// Lets `evaluator` weigh registered kernels wherever they fit, and makes what forced ones compute
/// one group of `start` each, which is made of groups of `nodes` (one a node). Kernels in `unused`
/// (name -> why) do not run; their places are fallbacks. Nodes in `alone` are in no match. Fails
/// only as the evaluator does. Deterministic.
absl::StatusOr<Grouping> FollowRegistered(const SeenGraph& seen, const Grouping& nodes,
                                          Grouping start, const RegisteredKernels& kernels,
                                          const std::map<std::string, std::string>& unused,
                                          const std::map<NodeId, std::string>& alone,
                                          GroupEvaluator* evaluator, RegisteredOutcome* outcome);

}  // namespace fusion
