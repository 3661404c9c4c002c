#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/bundle/rules/rules.h"
#include "core/device/device_spec.h"
#include "core/graph/graph.h"

namespace fusion {

/// A place in a graph where a rule holds.
struct RuleMatch {
  int rule = 0;
  std::vector<NodeId> nodes;     // of the pattern and on the ways between them, ascending
  std::vector<NodeId> assigned;  // by node of the pattern; of equal places the first one found
};

/// What the nodes of a match are as one kernel, and with one kernel each.
struct MatchTerms {
  double time_us = 0;
  double apart_us = 0;
  int64_t saved_bytes = 0;
  int64_t usage_bytes = 0;  // tiles of a block
  int64_t launches = 0;     // apart
};
/// nullopt: no kernel can hold them. Asked only if a condition needs it.
using AskKernel =
    std::function<absl::StatusOr<std::optional<MatchTerms>>(const std::vector<NodeId>& nodes)>;

/// What looking may cost, so that no pattern holds a server up.
struct MatchLimits {
  size_t matches = 65536;  // of one rule
  /// Nodes looked at, by all rules together; besides, each rule may look at every node.
  int64_t steps = int64_t{1} << 22;
};

/// InvalidArgument, naming rule and node, for an operator type that this build does not have.
absl::Status CheckRuleOps(const Rule& rule);

/// Every place where a rule holds, by rule; places with the same nodes are one. `graph` has static
/// shapes; CheckRuleOps held. ResourceExhausted, naming the rule, beyond a limit; else fails as
/// `ask` does. Deterministic.
absl::StatusOr<std::vector<RuleMatch>> MatchRules(const Graph& graph, const DeviceSpec& device,
                                                  const Rules& rules, const AskKernel& ask,
                                                  const MatchLimits& limits = {});

/// The value of an expression (ParseRuleExpression) where the nodes of its pattern are those of a
/// match; nullopt: it has none.
std::optional<double> ValueAt(const Graph& graph, const DeviceSpec& device,
                              const std::vector<NodeId>& assigned,
                              const std::vector<RuleStep>& expression);

/// The tensor that a step names there (ParseRuleTensor); kNoTensor: there is none.
TensorId TensorAt(const Graph& graph, const std::vector<NodeId>& assigned, const RuleStep& tensor);

}  // namespace fusion
