#pragma once

#include <string>
#include <vector>

#include "core/bundle/rules/rule_condition.h"

namespace fusion {

// Limits for the rules of a request or a file; see proto/fusion/v1/rules.proto.
inline constexpr int kMaxRules = 64;
inline constexpr int kMaxRuleNodes = 16;
inline constexpr int kMaxRuleOps = 16;
inline constexpr int kMaxRuleEdges = 32;
inline constexpr int kMaxRuleThrough = 32;
inline constexpr int kMostThrough = 8;  // nodes on one path between the ends of an edge
inline constexpr int kMaxRuleInputs = 8;
inline constexpr int kMaxRuleConditions = 8;
inline constexpr size_t kMaxRuleNameBytes = 64;
inline constexpr size_t kMaxRuleIdBytes = 32;
inline constexpr double kLeastRuleFactor = 0.01;
inline constexpr double kMostRuleFactor = 100;

/// Wildcard: matches every operator type.
inline constexpr const char* kAnyOp = "*";

enum class RuleAction : uint8_t {
  kForce,   // the nodes of a match stay in one kernel
  kForbid,  // no kernel contains a part of every node of a match
  kBias,    // in a kernel with a whole match, the match's estimated time is scaled by `factor`
};

struct RuleNode {
  std::string id;                // name of the node in edges and conditions
  std::vector<std::string> ops;  // alternative operator types; kAnyOp alone: any type
};

/// A data dependence of the pattern: `to` reads a result of `from`, directly or through other
/// nodes.
struct RuleEdge {
  int from = 0;                      // position in Rule::nodes
  int to = 0;                        // position in Rule::nodes
  int input = -1;                    // position of the input of `to`; -1: any
  std::vector<std::string> through;  // operator types allowed between; empty: `to` reads directly
  int most = kMostThrough;           // maximum number of nodes between on one path
};

/// Nodes that all read the same tensor, which is neither a weight nor a constant.
struct RuleInput {
  std::vector<int> nodes;  // positions in Rule::nodes, at least two
  int input = -1;          // position of the input of each node; -1: any
};

/// A user's override of the planner: an action for each place of the graph where the pattern
/// matches and all conditions hold. DecodeRules (core/wire) guarantees that positions are in range
/// and the pattern is connected. proto/fusion/v1/rules.proto defines each field.
struct Rule {
  std::string name;
  RuleAction action = RuleAction::kBias;
  double factor = 1;  // kBias
  std::vector<RuleNode> nodes;
  std::vector<RuleEdge> edges;
  std::vector<RuleInput> inputs;
  std::vector<RuleCondition> when;
};

using Rules = std::vector<Rule>;

/// URL of the status payload of errors that rules of the request cause: the names of these rules,
/// separated by spaces. Rules of the service are not named.
inline constexpr char kBlamedRules[] = "fusion.v1/blamed_rules";

/// Stable text of everything that can change a plan or its ledger, names included. Part of plan
/// keys. Equal texts mean equal rules. Empty if there are none.
std::string KeyText(const Rules& rules);

}  // namespace fusion
