#pragma once

#include <string>
#include <vector>

#include "core/bundle/rules/rule_condition.h"

namespace fusion {

// Limits of what a request or a file may hold; see proto/fusion/v1/rules.proto.
inline constexpr int kMaxRules = 64;
inline constexpr int kMaxRuleNodes = 16;
inline constexpr int kMaxRuleOps = 16;
inline constexpr int kMaxRuleEdges = 32;
inline constexpr int kMaxRuleThrough = 32;
inline constexpr int kMostThrough = 8;  // nodes between the ends of an edge, on one way
inline constexpr int kMaxRuleInputs = 8;
inline constexpr int kMaxRuleConditions = 8;
inline constexpr size_t kMaxRuleNameBytes = 64;
inline constexpr size_t kMaxRuleIdBytes = 32;
inline constexpr double kLeastRuleFactor = 0.01;
inline constexpr double kMostRuleFactor = 100;

/// The operator type that stands for every one.
inline constexpr const char* kAnyOp = "*";

enum class RuleAction : uint8_t {
  kForce,   // the nodes of a match stay in one kernel
  kForbid,  // no kernel holds something of every node of a match
  kBias,    // a kernel that holds a whole match counts with its time times `factor`
};

struct RuleNode {
  std::string id;
  std::vector<std::string> ops;  // any one of them; kAnyOp alone: every one
};

/// One node reads what another computes. Nodes by position in the pattern.
struct RuleEdge {
  int from = 0;
  int to = 0;
  int input = -1;                    // of `to`; -1: any
  std::vector<std::string> through;  // operator types that may lie between,
  int most = kMostThrough;           // so many on one way
};

/// Nodes that all read one tensor, which is no constant.
struct RuleInput {
  std::vector<int> nodes;
  int input = -1;  // of each of them; -1: any
};

/// A user's word against the planner: an action wherever a pattern is found in the graph and all
/// conditions hold. As DecodeRules makes it, it is sound: positions are in range, every node is
/// connected with the others. proto/fusion/v1/rules.proto states what each field means.
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

/// Payload of an error that rules of the request are to blame for, not those of the service: their
/// names, with spaces between.
inline constexpr char kBlamedRules[] = "fusion.v1/blamed_rules";

/// Everything of the rules that can change a plan or its ledger, names included, as stable text;
/// part of plan keys. Equal texts are equal rules. Empty for none.
std::string KeyText(const Rules& rules);

}  // namespace fusion
