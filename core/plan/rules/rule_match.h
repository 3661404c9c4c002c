#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/bundle/rules/rules.h"
#include "core/device/device_spec.h"
#include "core/graph/graph.h"

namespace fusion {

/// A place in a graph where the pattern and conditions of a rule hold.
struct RuleMatch {
  int rule = 0;
  std::vector<NodeId> nodes;     // nodes of the pattern and on paths between them, ascending
  std::vector<NodeId> assigned;  // by node of the pattern; the first of equivalent ones
};

/// The cost of the nodes of a match as one kernel, and with one kernel per node. Conditions of
/// rules compare these.
struct MatchTerms {
  double time_us = 0;
  double apart_us = 0;
  int64_t saved_bytes = 0;
  int64_t usage_bytes = 0;  // on-chip bytes of the tiles of one block
  int64_t launches = 0;     // with one kernel per node
};
/// Called only if a condition needs the terms of a match. nullopt: no kernel can hold the nodes.
using AskKernel =
    std::function<absl::StatusOr<std::optional<MatchTerms>>(const std::vector<NodeId>& nodes)>;

/// Limits on the cost of matching, so that no pattern can stall a server.
struct MatchLimits {
  size_t matches = 65536;  // per rule
  /// Visited nodes, over all rules. In addition each rule may visit every node once.
  int64_t steps = int64_t{1} << 22;
};

/// InvalidArgument, naming rule and node, if the rule uses an operator type that this build does
/// not have.
absl::Status CheckRuleOps(const Rule& rule);

/// Every match of every rule, in the order of rules. Matches of a rule with equal nodes count once.
/// `graph` has static shapes; CheckRuleOps must hold for each rule. ResourceExhausted, naming the
/// rule, beyond a limit; otherwise fails as `ask` does. Deterministic.
absl::StatusOr<std::vector<RuleMatch>> MatchRules(const Graph& graph, const DeviceSpec& device,
                                                  const Rules& rules, const AskKernel& ask,
                                                  const MatchLimits& limits = {});

/// The value of an expression (ParseRuleExpression) at a match. `assigned`: RuleMatch::assigned.
/// nullopt: the expression has no value there.
std::optional<double> ValueAt(const Graph& graph, const DeviceSpec& device,
                              const std::vector<NodeId>& assigned,
                              const std::vector<RuleStep>& expression);

/// The tensor that a step (ParseRuleTensor) names at a match; kNoTensor: none.
TensorId TensorAt(const Graph& graph, const std::vector<NodeId>& assigned, const RuleStep& tensor);

}  // namespace fusion
