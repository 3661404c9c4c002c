#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan/rules/rule_match.h"
#include "core/wire/options/rules.h"
#include "tests/support/plan_cases.h"

namespace fusion {

using Nodes = std::vector<NodeId>;

/// Rules in text form; the process ends if they are none.
inline Rules RulesOf(std::string_view text) {
  auto rules = ParseRulesText(text, "rules", CheckRuleOps);
  FUSION_CHECK(rules.ok(), Message(rules.status()));
  return *std::move(rules);
}

/// The plan of a graph with rules, for Cpu().
inline absl::StatusOr<PlannedModel> TryPlan(
    const Graph& graph, std::string_view rules,
    const std::map<NodeId, std::string>& unfused_nodes = {}) {
  return MakePlan(graph, Cpu(), {.rules = RulesOf(rules)}, nullptr, unfused_nodes);
}

/// The same; the process ends if there is none.
inline PlannedModel PlanWithRules(const Graph& graph, std::string_view rules = "") {
  auto model = TryPlan(graph, rules);
  FUSION_CHECK(model.ok(), Message(model.status()));
  return *std::move(model);
}

/// The places of the only rule; no match is asked what it is as a kernel.
inline std::vector<Nodes> MatchesIn(const Graph& graph, std::string_view rule) {
  AskKernel never = [](const Nodes&) -> absl::StatusOr<std::optional<MatchTerms>> {
    return Internal("asked for a kernel");
  };
  auto matches = MatchRules(graph, Cpu(), RulesOf(rule), never);
  FUSION_CHECK(matches.ok(), Message(matches.status()));
  std::vector<Nodes> out;
  for (const RuleMatch& match : *matches) out.push_back(match.nodes);
  return out;
}

/// One rule of a pattern, with action and conditions.
inline std::string Rule1(std::string_view pattern, std::string_view rest) {
  return StrCat("rules { name: 'r' pattern { ", pattern, " } ", rest, " }");
}

/// Scores with a mask, twice read: nodes 0 to 5.
inline constexpr const char* kAttention = R"(graph "g" {
  %0 = input "q" : f32[8,64]
  %1 = input "k" : f32[64,8]
  %2 = input "v" : f32[8,64]
  %3 = input "mask" : f32[8,8]
  %4 = const "" : f32[] {0x1p-2}
  %5 = MatMul(%0, %1) : f32[8,8]  "" @ "scores"
  %6 = Mul(%5, %4) : f32[8,8]  "" @ "scale"
  %7 = Add(%6, %3) : f32[8,8]  "" @ "masked"
  %8 = Softmax(%7) {axis=-1} : f32[8,8]  "" @ "softmax"
  %9 = MatMul(%8, %2) : f32[8,64]  "" @ "context"
  %10 = MatMul(%3, %8) : f32[8,8]  "" @ "other"
  output %9
  output %10
}
)";

inline constexpr const char* kScoresSoftmax =
    "nodes { id: 'm' ops: 'MatMul' } nodes { id: 's' ops: 'Softmax' } ";

/// Three products of one input, a fourth of another, all of one shape.
inline Graph Projections() {
  GraphBuilder builder;
  TensorId x = builder.AddInput("x", {DType::kF32, Shape{40, 64}});
  TensorId y = builder.AddInput("y", {DType::kF32, Shape{40, 64}});
  for (int i = 0; i < 4; ++i) {
    TensorId w = builder.AddWeight(StrCat("w", i), {DType::kF32, Shape{64, 64}});
    builder.MarkOutput(builder.AddNode("MatMul", {i == 1 ? y : x, w}).value());
  }
  return builder.Build().value();
}

inline constexpr const char* kThree =
    "nodes { id: 'a' ops: 'MatMul' } nodes { id: 'b' ops: 'MatMul' } nodes { id: 'c' ops: '*' } "
    "inputs { nodes: ['a', 'b', 'c'] input: 0 }";

}  // namespace fusion
