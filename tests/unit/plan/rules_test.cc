// Rules of a user: where their patterns are found, and what each action makes of a plan.
#include "core/wire/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "absl/strings/cord.h"
#include "core/graph/builder.h"
#include "core/graph/canonical.h"
#include "core/graph/text.h"
#include "core/plan/planner.h"
#include "core/plan/rule_match.h"
#include "tests/support/transformer_graph.h"
#include "tests/support/whole_program.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

using Nodes = std::vector<NodeId>;

Graph Parse(std::string_view text) {
  auto graph = ParseGraph(text);
  FUSION_CHECK(graph.ok(), Message(graph.status()));
  return *std::move(graph);
}

Rules RulesOf(std::string_view text) {
  auto rules = ParseRulesText(text, "rules", CheckRuleOps);
  FUSION_CHECK(rules.ok(), Message(rules.status()));
  return *std::move(rules);
}

DeviceSpec Cpu() { return DeviceNamed("intel-skylake-server", 2); }

absl::StatusOr<PlannedModel> TryPlan(const Graph& graph, std::string_view rules,
                                     const std::map<NodeId, std::string>& alone = {}) {
  return MakePlan(graph, Cpu(), {.rules = RulesOf(rules)}, nullptr, alone);
}

PlannedModel PlanOf(const Graph& graph, std::string_view rules = "") {
  auto model = TryPlan(graph, rules);
  FUSION_CHECK(model.ok(), Message(model.status()));
  return *std::move(model);
}

// Labels of the groups that run at every inference, in order.
std::vector<std::string> Labels(const PlannedModel& model) {
  std::vector<std::string> labels;
  for (const PlanLaunch& launch : model.plan.launches) {
    labels.push_back(model.plan.groups[static_cast<size_t>(launch.group)].label);
  }
  return labels;
}

// The places of the only rule; no match is asked what it is as a kernel.
std::vector<Nodes> MatchesIn(const Graph& graph, std::string_view rule) {
  AskKernel never = [](const Nodes&) -> absl::StatusOr<std::optional<MatchTerms>> {
    return Internal("asked for a kernel");
  };
  auto matches = MatchRules(graph, Cpu(), RulesOf(rule), never);
  FUSION_CHECK(matches.ok(), Message(matches.status()));
  std::vector<Nodes> out;
  for (const RuleMatch& match : *matches) out.push_back(match.nodes);
  return out;
}

std::string Rule1(std::string_view pattern, std::string_view rest) {
  return StrCat("rules { name: 'r' pattern { ", pattern, " } ", rest, " }");
}

constexpr const char* kMatMulAddRelu = R"(graph "mar" {
  %0 = input "x" : f32[128,256]
  %1 = weight "w" : f32[256,512]
  %2 = weight "b" : f32[512]
  %3 = MatMul(%0, %1) : f32[128,512]  "" @ "mm"
  %4 = Add(%3, %2) : f32[128,512]  "" @ "add"
  %5 = Relu(%4) : f32[128,512]  "" @ "relu"
  output %5
}
)";

// Scores with a mask, twice read: nodes 0 to 5.
constexpr const char* kAttention = R"(graph "g" {
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

constexpr const char* kScoresSoftmax =
    "nodes { id: 'm' ops: 'MatMul' } nodes { id: 's' ops: 'Softmax' } ";

TEST(RuleMatch, NodesBetweenBelongToTheMatch) {
  Graph graph = Parse(kAttention);
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
  Graph graph = Parse(kAttention);
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
  Graph graph = Parse(R"(graph "g" {
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

// Three products of one input, a fourth of another, all of one shape.
Graph Projections() {
  GraphBuilder builder;
  TensorId x = builder.AddInput("x", {DType::kF32, Shape{40, 64}});
  TensorId y = builder.AddInput("y", {DType::kF32, Shape{40, 64}});
  for (int i = 0; i < 4; ++i) {
    TensorId w = builder.AddWeight(StrCat("w", i), {DType::kF32, Shape{64, 64}});
    builder.MarkOutput(builder.AddNode("MatMul", {i == 1 ? y : x, w}).value());
  }
  return builder.Build().value();
}

constexpr const char* kThree =
    "nodes { id: 'a' ops: 'MatMul' } nodes { id: 'b' ops: 'MatMul' } nodes { id: 'c' ops: '*' } "
    "inputs { nodes: ['a', 'b', 'c'] input: 0 }";

TEST(RuleMatch, NodesThatShareAnInputAreFoundOnce) {
  EXPECT_THAT(MatchesIn(Projections(), Rule1(kThree, "force {}")), ElementsAre(Nodes{0, 2, 3}));
  // Constants are nothing to share.
  Graph squares = Parse(R"(graph "g" {
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
  Graph graph = Parse(kAttention);
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

// ---- what the actions do ----

constexpr const char* kMatMulAdd =
    "nodes { id: 'm' ops: 'MatMul' } nodes { id: 'a' ops: 'Add' } edges { from: 'm' to: 'a' }";

// The entry about the two groups that hold nodes `a` and `b`.
const PlanDecision* PairOf(const Plan& plan, int a, int b) {
  auto holds = [&](int group, int node) {
    const std::vector<int>& nodes = plan.groups[static_cast<size_t>(group)].nodes;
    return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
  };
  for (const PlanDecision& d : plan.decisions) {
    if (d.subject != DecisionSubject::kPair) continue;
    for (const DecisionPlace& place : d.places) {
      if (holds(place.first_group, a) && holds(place.second_group, b)) return &d;
    }
  }
  return nullptr;
}

const PlanDecision* GroupEntryOf(const Plan& plan, int node) {
  for (const PlanDecision& d : plan.decisions) {
    if (d.subject != DecisionSubject::kGroup) continue;
    for (const DecisionPlace& place : d.places) {
      const std::vector<int>& nodes = plan.groups[static_cast<size_t>(place.first_group)].nodes;
      if (std::find(nodes.begin(), nodes.end(), node) != nodes.end()) return &d;
    }
  }
  return nullptr;
}

std::string FlipsOf(const PlanDecision& d) {
  return StrJoin(d.flips, "; ", [](const PlanFlip& flip) { return flip.words; });
}

TEST(Rules, ForbidKeepsAMatchInTwoKernels) {
  Graph graph = Parse(kMatMulAddRelu);
  EXPECT_THAT(Labels(PlanOf(graph)), ElementsAre("MatMul+Add+Relu"));
  PlannedModel model = PlanOf(graph, Rule1(kMatMulAdd, "forbid {}"));
  EXPECT_THAT(Labels(model), ElementsAre("MatMul", "Add+Relu"));
  const PlanDecision* pair = PairOf(model.plan, 0, 1);
  ASSERT_NE(pair, nullptr);
  EXPECT_EQ(pair->code, "rule");
  EXPECT_EQ(pair->verdict, Verdict::kForbidden);
  EXPECT_EQ(pair->reason,
            "rule \"r\" forbids one kernel with something of all 2 nodes of MatMul+Add");
  EXPECT_THAT(FlipsOf(*pair), HasSubstr("possible without the rule: "));
  EXPECT_GT(pair->benefit_us, 0) << "the rule costs that";
}

TEST(Rules, ForbidLooksAtPartsOfCompositesToo) {
  // Softmax alone is five loop ops: none of them may join the product.
  Graph graph = Parse(kAttention);
  PlannedModel model = PlanOf(
      graph,
      Rule1(StrCat(kScoresSoftmax, "edges { from: 'm' to: 's' through: '*' }"), "forbid {}"));
  for (const PlanGroup& group : model.plan.groups) {
    bool scores = std::count(group.nodes.begin(), group.nodes.end(), 0) > 0;
    bool softmax = std::count(group.nodes.begin(), group.nodes.end(), 3) > 0;
    EXPECT_FALSE(scores && softmax) << group.label;
  }
}

TEST(Rules, ViewsCountForNothingInAForbid) {
  Graph graph = Parse(R"(graph "g" {
  %0 = input "x" : f32[8,64]
  %1 = Transpose(%0) {perm=[1, 0]} : f32[64,8]  "" @ ""
  %2 = Tanh(%1) : f32[64,8]  "" @ ""
  output %2
}
)");
  PlannedModel model = PlanOf(graph, Rule1("nodes { id: 'a' ops: 'Transpose' } "
                                           "nodes { id: 'b' ops: 'Tanh' } "
                                           "edges { from: 'a' to: 'b' }",
                                           "forbid {}"));
  EXPECT_THAT(Labels(model), ElementsAre("Tanh"));
}

TEST(Rules, ABiasAboveOneDiscourages) {
  Graph graph = Parse(kMatMulAddRelu);
  PlannedModel model = PlanOf(graph, Rule1(kMatMulAdd, "bias { factor: 50 }"));
  EXPECT_THAT(Labels(model), ElementsAre("MatMul", "Add+Relu"));
  const PlanDecision* pair = PairOf(model.plan, 0, 1);
  ASSERT_NE(pair, nullptr);
  EXPECT_EQ(pair->code, "bias");
  EXPECT_EQ(pair->verdict, Verdict::kForbidden);
  EXPECT_THAT(pair->reason, HasSubstr("; rules count them as "));
  EXPECT_GT(pair->benefit_us, 0) << "estimates stay what they are";
  EXPECT_THAT(FlipsOf(*pair),
              HasSubstr("gains if rules counted the one kernel's time as less than"));
}

// `layers` times the same work, so large that every layer is two kernels.
Graph Layers(int layers) {
  GraphBuilder builder;
  TensorId at = builder.AddInput("x", {DType::kF32, Shape{128, 768}});
  for (int i = 0; i < layers; ++i) {
    TensorId up = builder.AddWeight(StrCat("up", i), {DType::kF32, Shape{768, 3072}});
    TensorId down = builder.AddWeight(StrCat("down", i), {DType::kF32, Shape{3072, 768}});
    TensorId hidden = builder.AddNode("MatMul", {at, up}).value();
    hidden = builder.AddNode("Relu", {hidden}).value();
    TensorId out = builder.AddNode("MatMul", {hidden, down}).value();
    at = builder.AddNode("Add", {at, out}).value();
  }
  builder.MarkOutput(at);
  return builder.Build().value();
}

constexpr const char* kBothProducts =
    "nodes { id: 'up' ops: 'MatMul' } nodes { id: 'down' ops: 'MatMul' } "
    "edges { from: 'up' to: 'down' through: 'Relu' }";

int GroupsWithTwoProducts(const PlannedModel& model) {
  int found = 0;
  for (const std::string& label : Labels(model)) {
    found += label.find("MatMul") != label.rfind("MatMul") ? 1 : 0;
  }
  return found;
}

TEST(Rules, ABiasBelowOneFavoursAndEstimatesStayHonest) {
  Graph graph = Layers(2);
  PlannedModel plain = PlanOf(graph);
  ASSERT_EQ(GroupsWithTwoProducts(plain), 0);
  PlannedModel model = PlanOf(graph, Rule1(kBothProducts, "bias { factor: 0.2 }"));
  EXPECT_EQ(GroupsWithTwoProducts(model), 2);
  EXPECT_GT(model.plan.totals.estimated_us, plain.plan.totals.estimated_us);
  const PlanDecision* group = GroupEntryOf(model.plan, 0);
  ASSERT_NE(group, nullptr);
  EXPECT_THAT(group->reason,
              testing::ContainsRegex("; rule \"r\" counts its time as 0\\.2[0-9]* of"));
}

TEST(Rules, AFavouredMatchOfThreeKernelsIsFoundAsAWhole) {
  // Two of the three count for nothing yet, and alone they gain nothing: a loss of the model's.
  Graph graph = Projections();
  PlannedModel apart =
      PlanOf(graph, Rule1("nodes { id: 'a' ops: 'MatMul' } nodes { id: 'b' ops: 'MatMul' } "
                          "inputs { nodes: ['a', 'b'] input: 0 }",
                          "forbid {}"));
  ASSERT_THAT(Labels(apart), Not(SizeIs(1)));
  std::string discouraged = StrCat(
      "rules { name: 'pairs' pattern { nodes { id: 'a' ops: 'MatMul' } nodes { id: 'b' ops: "
      "'MatMul' } inputs { nodes: ['a', 'b'] input: 0 } } bias { factor: 2 } }",
      Rule1(kThree, "bias { factor: 0.1 }"));
  PlannedModel model = PlanOf(graph, discouraged);
  EXPECT_THAT(Labels(model), testing::Contains(HasSubstr("MatMul | MatMul | MatMul")));
}

TEST(Rules, ForceKeepsAMatchTogetherInEveryEqualLayer) {
  PlannedModel one = PlanOf(Layers(1), Rule1(kBothProducts, "force {}"));
  PlannedModel model = PlanOf(Layers(3), Rule1(kBothProducts, "force {}"));
  EXPECT_EQ(GroupsWithTwoProducts(model), 3);
  EXPECT_EQ(model.plan.kernels.size(), one.plan.kernels.size()) << "equal layers share kernels";
  const PlanDecision* group = GroupEntryOf(model.plan, 0);
  ASSERT_NE(group, nullptr);
  EXPECT_THAT(group->reason, HasSubstr("; rule \"r\" keeps nodes of it together"));
  EXPECT_THAT(FlipsOf(*group), HasSubstr("without the rule that forces it"));
}

TEST(Rules, EqualLayersOfWhichOneIsMatchedAreTwoThings) {
  // Only behind the last layer nobody reads.
  const std::string last =
      "nodes { id: 'up' ops: 'MatMul' } nodes { id: 'down' ops: 'MatMul' } nodes { id: 'sum' ops: "
      "'Add' } edges { from: 'up' to: 'down' through: 'Relu' } edges { from: 'down' to: 'sum' }";
  const std::string when = " when: 'readers(sum.output) == 0'";
  Graph graph = Layers(3);
  PlannedModel forced = PlanOf(graph, Rule1(last, StrCat("force {}", when)));
  EXPECT_EQ(GroupsWithTwoProducts(forced), 1);
  EXPECT_THAT(Labels(forced).back(), HasSubstr("MatMul+Relu+MatMul"));
  PlannedModel favoured = PlanOf(graph, Rule1(last, StrCat("bias { factor: 0.2 }", when)));
  EXPECT_EQ(GroupsWithTwoProducts(favoured), 1);
  EXPECT_THAT(Labels(favoured).back(), HasSubstr("MatMul+Relu+MatMul"));
  // And the other way round: what is one kernel everywhere is two in one place.
  const std::string epilogue =
      "nodes { id: 'down' ops: 'MatMul' } nodes { id: 'sum' ops: 'Add' } "
      "edges { from: 'down' to: 'sum' }";
  std::vector<std::string> plain = Labels(PlanOf(graph));
  ASSERT_THAT(plain, Not(testing::Contains("Add")));
  std::vector<std::string> cut = Labels(PlanOf(graph, Rule1(epilogue, StrCat("forbid {}", when))));
  EXPECT_EQ(std::count(cut.begin(), cut.end(), "Add"), 1);
  EXPECT_EQ(cut.size(), plain.size() + 1);
  EXPECT_EQ(cut.back(), "Add");
}

TEST(Rules, AConditionOnTheKernelMakesAForceGiveWay) {
  Graph graph = Layers(1);
  EXPECT_EQ(
      GroupsWithTwoProducts(PlanOf(graph, Rule1(kBothProducts, "force {} when: 'speedup > 1.1'"))),
      0)
      << "one kernel is hardly faster than three";
  EXPECT_EQ(GroupsWithTwoProducts(
                PlanOf(graph, Rule1(kBothProducts,
                                    "force {} when: 'speedup > 0' when: 'launches == 3' "
                                    "when: 'time_us < 2 * apart_us' when: 'saved_bytes > 0' "
                                    "when: 'l2_usage > 0'"))),
            1);
  EXPECT_EQ(GroupsWithTwoProducts(PlanOf(
                graph, Rule1(kBothProducts, "force {} when: 'l1_usage < 0.8 * l1_capacity'"))),
            0)
      << "its tiles are larger than that";
}

// ---- what cannot be forced ----

// The message of what must fail with FailedPrecondition.
std::string Refused(const absl::StatusOr<PlannedModel>& model) {
  EXPECT_TRUE(absl::IsFailedPrecondition(model.status())) << model.status();
  return std::string(Message(model.status()));
}

constexpr const char* kBarrier = R"(graph "g" {
  %0 = input "x" : f32[6,10]
  %1 = Tanh(%0) : f32[6,10]  "" @ "tanh"
  %2 = Reshape(%1) {shape=[4, 15]} : f32[4,15]  "" @ "view"
  %3 = Softmax(%2) {axis=-1} : f32[4,15]  "" @ "softmax"
  output %3
}
)";

constexpr const char* kAcross =
    "nodes { id: 'a' ops: 'Tanh' } nodes { id: 'b' ops: 'Softmax' } "
    "edges { from: 'a' to: 'b' through: 'Reshape' }";

TEST(Rules, ForcingTheIllegalSaysWhyAndWhere) {
  absl::StatusOr<PlannedModel> model = TryPlan(Parse(kBarrier), Rule1(kAcross, "force {}"));
  EXPECT_THAT(Refused(model),
              AllOf(HasSubstr("rule \"r\" forces node \"tanh\" (Tanh), node \"softmax\" (Softmax) "
                              "into one kernel; there is no such kernel: reshape: ")));
  EXPECT_EQ(std::string(model.status().GetPayload(kFailedNode).value()), "0 2");
  // The same as advice changes nothing.
  EXPECT_TRUE(TryPlan(Parse(kBarrier), Rule1(kAcross, "bias { factor: 0.01 }")).ok());
  EXPECT_TRUE(TryPlan(Parse(kBarrier), Rule1(kAcross, "force {} when: 'speedup > 0'")).ok());
}

TEST(Rules, WhatDoesNotFitOnChipSaysTheBytes) {
  GraphBuilder builder;
  TensorId x = builder.AddInput("x", {DType::kF32, Shape{4, 200000}});
  TensorId y = builder.AddNode("Softmax", {x}, {{"axis", int64_t{-1}}}, "rows").value();
  TensorId z = builder.AddNode("Softmax", {y}, {{"axis", int64_t{0}}}, "columns").value();
  builder.MarkOutput(z);
  Rules rules =
      RulesOf(Rule1("nodes { id: 'a' ops: 'Softmax' } nodes { id: 'b' ops: 'Softmax' } "
                    "edges { from: 'a' to: 'b' }",
                    "force {}"));
  auto model = MakePlan(builder.Build().value(), DeviceNamed("a100", 0), {.rules = rules});
  EXPECT_THAT(Refused(model),
              AllOf(HasSubstr("node \"rows\" (Softmax), node \"columns\" (Softmax)"),
                    testing::ContainsRegex("no such kernel: [a-z-]+: .*[0-9]")));
}

TEST(Rules, WorkOnWeightsAloneCannotBeForcedIntoARun) {
  Graph graph = Parse(R"(graph "g" {
  %0 = input "x" : f32[8,64]
  %1 = weight "w" : f32[64,8]
  %2 = Tanh(%1) : f32[64,8]  "" @ "packed"
  %3 = MatMul(%0, %2) : f32[8,8]  "" @ "product"
  output %3
}
)");
  EXPECT_THAT(Refused(TryPlan(graph, Rule1("nodes { id: 'a' ops: 'Tanh' } "
                                           "nodes { id: 'b' ops: 'MatMul' } "
                                           "edges { from: 'a' to: 'b' }",
                                           "force {}"))),
              HasSubstr("no such kernel: prepare: "));
}

TEST(Rules, AForbidThatContradictsAForceIsNamed) {
  EXPECT_THAT(Refused(TryPlan(Parse(kMatMulAddRelu), StrCat(Rule1(kMatMulAdd, "force {}"),
                                                            "rules { name: 'never' pattern { ",
                                                            kMatMulAdd, " } forbid {} }"))),
              AllOf(HasSubstr("rule \"r\" forces node \"mm\" (MatMul), node \"add\" (Add)"),
                    HasSubstr("rule: rule \"never\" forbids one kernel")));
}

TEST(Rules, ANodeWhoseKernelFailedCannotBeForced) {
  EXPECT_THAT(Refused(TryPlan(Parse(kMatMulAddRelu), Rule1(kMatMulAdd, "force {}"),
                              {{1, "it did not compile"}})),
              HasSubstr("no such kernel: alone: a kernel of a node failed: it did not compile"));
}

TEST(Rules, OverlappingMatchesUnite) {
  // Add belongs to both.
  PlannedModel model = PlanOf(Parse(kMatMulAddRelu),
                              StrCat(Rule1(kMatMulAdd, "force {}"),
                                     "rules { name: 'other' pattern { nodes { id: 'a' ops: 'Add' } "
                                     "nodes { id: 'b' ops: 'Relu' } edges { from: 'a' to: 'b' } } "
                                     "force {} }"));
  EXPECT_THAT(Labels(model), ElementsAre("MatMul+Add+Relu"));
  // Each by itself is possible, both together are not: the barrier is in the middle.
  Graph graph = Parse(R"(graph "g" {
  %0 = input "x" : f32[6,10]
  %1 = Tanh(%0) : f32[6,10]  "" @ "tanh"
  %2 = Relu(%1) : f32[6,10]  "" @ "relu"
  %3 = Reshape(%2) {shape=[4, 15]} : f32[4,15]  "" @ "view"
  %4 = Softmax(%3) {axis=-1} : f32[4,15]  "" @ "softmax"
  %5 = Exp(%4) : f32[4,15]  "" @ "exp"
  %6 = Reshape(%5) {shape=[6, 10]} : f32[6,10]  "" @ "back"
  %7 = Add(%1, %6) : f32[6,10]  "" @ "sum"
  output %7
}
)");
  // Tanh and Add are one kernel only with all that lies on the way from one to the other.
  EXPECT_THAT(
      Refused(TryPlan(graph, Rule1("nodes { id: 'a' ops: 'Tanh' } nodes { id: 'b' ops: 'Add' } "
                                   "edges { from: 'a' to: 'b' }",
                                   "force {}"))),
      AllOf(HasSubstr("rule \"r\" forces node \"tanh\" (Tanh), node \"sum\" (Add) into one "
                      "kernel, with what lies between: node \"relu\" (Relu), node "
                      "\"softmax\" (Softmax)"),
            HasSubstr("no such kernel: reshape: ")));
}

TEST(Rules, WhatLiesOnTheWayJoinsTheForced) {
  Graph graph = Parse(R"(graph "g" {
  %0 = input "x" : f32[64,64]
  %1 = Relu(%0) : f32[64,64]  "" @ ""
  %2 = Neg(%1) : f32[64,64]  "" @ ""
  %3 = Add(%1, %2) : f32[64,64]  "" @ ""
  output %3
}
)");
  const std::string diamond =
      "nodes { id: 'a' ops: 'Relu' } nodes { id: 'b' ops: 'Add' } edges { from: 'a' to: 'b' }";
  ASSERT_THAT(MatchesIn(graph, Rule1(diamond, "force {}")), ElementsAre(Nodes{0, 2}));
  EXPECT_THAT(Labels(PlanOf(graph, Rule1(diamond, "force {}"))), ElementsAre("Relu+Neg+Add"));
}

TEST(Rules, OneKernelANodeFollowsNone) {
  Graph graph = Parse(kMatMulAddRelu);
  for (std::string_view action : {"force {}", "bias { factor: 0.01 }"}) {
    auto model = MakePlan(
        graph, Cpu(), {.fusion = FusionMode::kOpByOp, .rules = RulesOf(Rule1(kMatMulAdd, action))});
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_THAT(Labels(*model), SizeIs(3));
  }
}

TEST(Rules, HighPressureLeavesTheForcedTogether) {
  Graph graph = Layers(1);
  for (Hints hints : {Hints{.memory_pressure = 0.9}, Hints{.compute_pressure = 0.9}}) {
    auto model = MakePlan(graph, Cpu(),
                          {.hints = hints, .rules = RulesOf(Rule1(kBothProducts, "force {}"))});
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(GroupsWithTwoProducts(*model), 1);
  }
}

// ---- the file that is shipped ----

Rules Shipped() {
  auto rules =
      ReadRulesFile(StrCat(FUSION_SOURCE_DIR, "/deploy/rules/autofusion.textproto"), CheckRuleOps);
  FUSION_CHECK(rules.ok(), Message(rules.status()));
  return *std::move(rules);
}

// By name of the rule.
std::map<std::string, std::vector<Nodes>> ShippedMatchesIn(const Graph& graph) {
  AskKernel never = nullptr;
  Rules rules = Shipped();
  auto matches = MatchRules(graph, Cpu(), rules, never);
  FUSION_CHECK(matches.ok(), Message(matches.status()));
  std::map<std::string, std::vector<Nodes>> out;
  for (const RuleMatch& match : *matches) {
    out[rules[static_cast<size_t>(match.rule)].name].push_back(match.nodes);
  }
  return out;
}

std::string OpsOf(const Graph& graph, const Nodes& nodes) {
  return StrJoin(nodes, " ", [&](NodeId n) { return graph.node(n).def->name; });
}

TEST(ShippedRules, OnlyAdviseOrForbid) {
  Rules rules = Shipped();
  EXPECT_GE(rules.size(), 5u);
  for (const Rule& rule : rules) {
    EXPECT_NE(rule.action, RuleAction::kForce) << rule.name << " could make a request fail";
    EXPECT_EQ(rule.action == RuleAction::kForbid, rule.name == "no-conv-softmax");
  }
}

TEST(ShippedRules, FindTheArticlesPatternsInATransformer) {
  Graph graph = Canonicalise(TransformerGraph(2)).value().graph;
  std::map<std::string, std::vector<Nodes>> found = ShippedMatchesIn(graph);
  ASSERT_THAT(found["qkv-projection"], SizeIs(2));
  EXPECT_EQ(OpsOf(graph, found["qkv-projection"][0]), "MatMul MatMul MatMul");
  ASSERT_THAT(found["attention"], SizeIs(2));
  EXPECT_EQ(OpsOf(graph, found["attention"][0]), "MatMul Div Add Softmax MatMul");
  // Behind attention twice, behind the feed-forward block of the first layer once.
  EXPECT_THAT(found["post-attention-written-out"], SizeIs(3));
  EXPECT_THAT(found["post-attention"], IsEmpty());
  EXPECT_THAT(found["ffn"], IsEmpty()) << "its activation is no SiLU";
  EXPECT_THAT(found["no-conv-softmax"], IsEmpty());
}

constexpr const char* kSwish = R"(graph "g" {
  %0 = input "x" : f32[16,64]
  %1 = weight "w1" : f32[64,128]
  %2 = weight "b1" : f32[128]
  %3 = weight "w2" : f32[128,64]
  %4 = weight "b2" : f32[64]
  %5 = weight "g" : f32[64]
  %6 = weight "b" : f32[64]
  %7 = MatMul(%0, %1) : f32[16,128]  "" @ ""
  %8 = Add(%7, %2) : f32[16,128]  "" @ ""
  %9 = Sigmoid(%8) : f32[16,128]  "" @ ""
  %10 = Mul(%8, %9) : f32[16,128]  "" @ ""
  %11 = MatMul(%10, %3) : f32[16,64]  "" @ ""
  %12 = Add(%11, %4) : f32[16,64]  "" @ ""
  %13 = Add(%12, %0) : f32[16,64]  "" @ ""
  %14 = LayerNormalization(%13, %5, %6) {axis=-1} : f32[16,64]  "" @ ""
  output %14
}
)";

TEST(ShippedRules, FindTheFeedForwardBlockAndTheNormalisation) {
  Graph graph = Parse(kSwish);
  std::map<std::string, std::vector<Nodes>> found = ShippedMatchesIn(graph);
  EXPECT_THAT(found["ffn"], ElementsAre(Nodes{0, 1, 2, 3, 4, 5}));
  EXPECT_THAT(found["post-attention"], ElementsAre(Nodes{4, 5, 6, 7}));
  auto model = MakePlan(graph, Cpu(), {.rules = Shipped()});
  EXPECT_TRUE(model.ok()) << model.status();
}

TEST(ShippedRules, CostAtMostATenthOfWhatTheyTouch) {
  Graph graph = Canonicalise(TransformerGraph(2)).value().graph;
  for (const char* device : {"intel-skylake-server", "generic-avx2", "h100", "ascend_910b"}) {
    DeviceSpec spec = DeviceNamed(device, 0);
    auto plain = MakePlan(graph, spec, {});
    auto model = MakePlan(graph, spec, {.rules = Shipped()});
    ASSERT_TRUE(plain.ok() && model.ok()) << device << model.status();
    EXPECT_LE(model->plan.totals.estimated_us, plain->plan.totals.estimated_us / 0.9) << device;
  }
}

TEST(ShippedRules, ForbidAConvolutionAndASoftmaxInOneKernel) {
  Graph graph = Parse(R"(graph "g" {
  %0 = input "x" : f32[1,4,16,16]
  %1 = weight "w" : f32[8,4,1,1]
  %2 = Conv(%0, %1) : f32[1,8,16,16]  "" @ "conv"
  %3 = Softmax(%2) {axis=-1} : f32[1,8,16,16]  "" @ "softmax"
  output %3
}
)");
  EXPECT_THAT(Labels(PlanOf(graph))[0], HasSubstr("Convolve+ReduceMax"))
      << "without rules the softmax begins in the kernel of the convolution";
  auto model = MakePlan(graph, Cpu(), {.rules = Shipped()});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(Labels(*model)[0], "Convolve");
  const PlanDecision* pair = PairOf(model->plan, 0, 1);
  ASSERT_NE(pair, nullptr);
  EXPECT_EQ(pair->code, "rule");
  EXPECT_THAT(pair->reason, AllOf(HasSubstr("\"no-conv-softmax\""), HasSubstr("Conv+Softmax")));
}

TEST(ShippedRules, AreFoundInAHundredLayersWithoutReachingALimit) {
  Graph graph = TransformerGraph(100);
  std::map<std::string, std::vector<Nodes>> found = ShippedMatchesIn(graph);
  EXPECT_EQ(found["qkv-projection"].size(), 100u);
  EXPECT_EQ(found["attention"].size(), 100u);
  EXPECT_EQ(found["post-attention-written-out"].size(), 199u);
}

}  // namespace
}  // namespace fusion
