// Where the patterns of rules are found.
#include "core/plan/rules/rule_match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/build/builder.h"
#include "tests/support/rule_cases.h"

namespace fusion {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(RuleMatch, NodesBetweenBelongToTheMatch) {
  Graph graph = GraphOf(kAttention);
  auto find = [&](std::string_view edge) {
    return MatchesIn(
        graph, Rule1(StrCat(kScoresSoftmax, "edges { from: 'm' to: 's' ", edge, "}"), "force {}"));
  };
  EXPECT_THAT(find(""), IsEmpty()) << "not directly";
  EXPECT_THAT(find("through: ['Mul']"), IsEmpty()) << "the mask lies between as well";
  EXPECT_THAT(find("through: ['Mul', 'Add']"), ElementsAre(Nodes{0, 1, 2, 3}));
  EXPECT_THAT(find("through: '*'"), ElementsAre(Nodes{0, 1, 2, 3}));
  EXPECT_THAT(find("through: '*' most: 1"), IsEmpty());
  EXPECT_THAT(find("through: '*' most: 2"), SizeIs(1));
}

TEST(RuleMatch, AnEdgeMayNameTheInput) {
  Graph graph = GraphOf(kAttention);
  auto find = [&](std::string_view edge) {
    return MatchesIn(
        graph, Rule1(StrCat(kScoresSoftmax, "edges { from: 's' to: 'm' ", edge, "}"), "force {}"));
  };
  EXPECT_THAT(find(""), ElementsAre(Nodes{3, 4}, Nodes{3, 5}));
  EXPECT_THAT(find("input: 0"), ElementsAre(Nodes{3, 4}));
  EXPECT_THAT(find("input: 1"), ElementsAre(Nodes{3, 5}));
  EXPECT_THAT(find("input: 2"), IsEmpty());
}

TEST(RuleMatch, EveryEdgeMustHold) {
  // The variance of a row: the ways from the centred values to the quotient.
  Graph graph = GraphOf(R"(graph "g" {
  %0 = input "x" : f32[8,64]
  %1 = const "" : f32[] {0x1p-20}
  %2 = ReduceMean(%0) {axes=[-1]} : f32[8,1]  "" @ ""
  %3 = Sub(%0, %2) : f32[8,64]  "" @ ""
  %4 = Mul(%3, %3) : f32[8,64]  "" @ ""
  %5 = ReduceMean(%4) {axes=[-1]} : f32[8,1]  "" @ ""
  %6 = Add(%5, %1) : f32[8,1]  "" @ ""
  %7 = Sqrt(%6) : f32[8,1]  "" @ ""
  %8 = Div(%3, %7) : f32[8,64]  "" @ ""
  %9 = Sub(%8, %2) : f32[8,64]  "" @ ""
  %10 = Div(%9, %7) : f32[8,64]  "" @ ""
  output %10
}
)");
  EXPECT_THAT(MatchesIn(graph, Rule1("nodes { id: 'c' ops: 'Sub' } nodes { id: 'd' ops: 'Div' } "
                                     "edges { from: 'c' to: 'd' input: 0 } "
                                     "edges { from: 'c' to: 'd' input: 1 "
                                     "  through: ['Mul', 'ReduceMean', 'Add', 'Sqrt'] }",
                                     "force {}")),
              ElementsAre(Nodes{1, 2, 3, 4, 5, 6}));
}

TEST(RuleMatch, NodesThatShareAnInputAreFoundOnce) {
  EXPECT_THAT(MatchesIn(Projections(), Rule1(kThree, "force {}")), ElementsAre(Nodes{0, 2, 3}));
  // Constants are nothing to share.
  Graph squares = GraphOf(R"(graph "g" {
  %0 = input "x" : f32[8]
  %1 = input "y" : f32[8]
  %2 = weight "w" : f32[8]
  %3 = Mul(%0, %2) : f32[8]  "" @ ""
  %4 = Mul(%1, %2) : f32[8]  "" @ ""
  %5 = Mul(%0, %1) : f32[8]  "" @ ""
  output %3
  output %4
  output %5
}
)");
  EXPECT_THAT(MatchesIn(squares, Rule1("nodes { id: 'a' ops: 'Mul' } nodes { id: 'b' ops: 'Mul' } "
                                       "inputs { nodes: ['a', 'b'] }",
                                       "force {}")),
              ElementsAre(Nodes{0, 2}, Nodes{1, 2}));
}

TEST(RuleMatch, ConditionsAreAboutTensorsAndTheDevice) {
  Graph graph = GraphOf(kAttention);
  auto holds = [&](std::string_view when) {
    std::string pattern =
        StrCat(kScoresSoftmax, "edges { from: 'm' to: 's' through: ['Mul', 'Add'] }");
    std::string rest = StrCat("force {} when: '", when, "'");
    return MatchesIn(graph, Rule1(pattern, rest)).size() == 1;
  };
  EXPECT_TRUE(holds("dim(m.input0, 1) == 64"));
  EXPECT_TRUE(holds("dim(m.input1, -2) == 64"));
  EXPECT_FALSE(holds("dim(m.input0, 2) >= 0"));
  EXPECT_TRUE(holds("rank(s.output) == 2"));
  EXPECT_TRUE(holds("elements(m.input0) == 512"));
  EXPECT_TRUE(holds("bytes(m.input0) == 2048"));
  EXPECT_TRUE(holds("readers(s.output) == 2"));
  EXPECT_TRUE(holds("constant(m.input1) == 0"));
  EXPECT_FALSE(holds("constant(m.input2) == 0"));
  EXPECT_TRUE(holds("dtype(s.output) == f32"));
  EXPECT_FALSE(holds("dtype(s.output) == f16"));
  EXPECT_TRUE(holds("units == 2"));
  EXPECT_TRUE(holds("vector_bytes == 64"));
  EXPECT_TRUE(holds("kind == cpu"));
  EXPECT_TRUE(holds("on_chip_capacity == l2_capacity"));
  EXPECT_TRUE(holds("memory_capacity > 1e18"));
  EXPECT_FALSE(holds("ub_capacity > 0"));
}

TEST(RuleMatch, ConditionsAreAboutAttributes) {
  Graph graph = GraphOf(R"(graph "g" {
  %0 = input "x" : f32[4,8]
  %1 = LeakyRelu(%0) {alpha=f(0x1p-2)} : f32[4,8]  "" @ "a"
  %2 = Transpose(%1) {perm=[1, 0]} : f32[8,4]  "" @ "b"
  output %2
})");
  auto holds = [&](std::string_view when) {
    return MatchesIn(graph, Rule1("nodes { id: 'a' ops: 'LeakyRelu' } nodes { id: 't' ops: "
                                  "'Transpose' } edges { from: 'a' to: 't' }",
                                  StrCat("force {} when: '", when, "'")))
               .size() == 1;
  };
  EXPECT_TRUE(holds("attr(a, alpha) == 0.25"));
  EXPECT_FALSE(holds("attr(a, alpha) == 0.01"));
  EXPECT_TRUE(holds("attr(t, perm[0]) == 1"));
  EXPECT_TRUE(holds("attr(t, perm[1], 7) == 0"));
  EXPECT_FALSE(holds("attr(t, perm[2]) >= 0"));
  EXPECT_FALSE(holds("attr(t, perm) >= 0")) << "a list is no number";
  EXPECT_FALSE(holds("attr(a, gamma) >= 0")) << "there is none";
  EXPECT_TRUE(holds("attr(a, gamma, -3) == -3"));
  EXPECT_TRUE(holds("attr_text(a, mode, linear) == linear"));
  EXPECT_TRUE(holds("attr_text(a, mode, linear) != cubic"));
  EXPECT_FALSE(holds("attr_text(a, mode) != cubic"));
  EXPECT_FALSE(holds("attr_text(a, alpha, x) == x")) << "it is a number";
}

TEST(RuleMatch, EveryLevelOfTheDevicesCanBeNamed) {
  const std::vector<DeviceSpec> specs = BuiltInSpecs().value();
  for (const DeviceSpec& device : specs) {
    for (const MemoryLevel& level : device.levels) {
      auto condition = ParseRuleCondition(StrCat(level.name, "_capacity > 0"), {});
      EXPECT_TRUE(condition.ok()) << device.name << ": " << condition.status();
    }
  }
}

TEST(RuleMatch, OperatorsThatDoNotExistAreNamed) {
  auto error = [](std::string_view rule) {
    return std::string(Message(ParseRulesText(rule, "f", CheckRuleOps).status()));
  };
  EXPECT_THAT(error(Rule1("nodes { id: 'a' ops: ['MatMul', 'Matmul'] }", "force {}")),
              HasSubstr("f:1: rule \"r\": ops of node \"a\": \"Matmul\" is no operator"));
  EXPECT_THAT(error(Rule1("nodes { id: 'a' ops: '*' } nodes { id: 'b' ops: '*' } "
                          "edges { from: 'a' to: 'b' through: 'Nothing' }",
                          "force {}")),
              HasSubstr("through of the edge \"a\" > \"b\": \"Nothing\" is no operator"));
}

TEST(RuleMatch, HostilePatternsEndInAnErrorThatNamesTheRule) {
  // Every node reads two others: ways multiply.
  GraphBuilder builder;
  TensorId a = builder.AddInput("x", {DType::kF32, Shape{4}});
  TensorId b = a;
  for (int i = 0; i < 3000; ++i) {
    TensorId c = builder.AddNode("Add", {a, b}).value();
    a = b;
    b = c;
  }
  builder.MarkOutput(b);
  Graph graph = builder.Build().value();
  std::string nodes, edges;
  for (int i = 0; i < 16; ++i) {
    nodes += StrCat("nodes { id: 'n", i, "' ops: '*' } ");
    if (i > 0) edges += StrCat("edges { from: 'n", i - 1, "' to: 'n", i, "' through: '*' } ");
  }
  for (std::string_view action : {"force {}", "forbid {}", "bias { factor: 0.5 }"}) {
    auto model = TryPlan(graph, Rule1(StrCat(nodes, edges), action));
    EXPECT_TRUE(absl::IsResourceExhausted(model.status())) << model.status();
    EXPECT_THAT(std::string(Message(model.status())), HasSubstr("rule \"r\": "));
  }
  AskKernel never = nullptr;
  auto many = MatchRules(graph, Cpu(), RulesOf(Rule1("nodes { id: 'a' ops: 'Add' }", "force {}")),
                         never, {.matches = 100});
  EXPECT_EQ(Message(many.status()),
            "rule \"r\": its pattern has more than 100 matches in this graph");
}

}  // namespace
}  // namespace fusion
