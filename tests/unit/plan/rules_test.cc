// What each action of a rule makes of a plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "absl/strings/cord.h"
#include "core/graph/build/builder.h"
#include "tests/support/rule_cases.h"
#include "tests/support/transformer_graph.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

constexpr const char* kMatMulAdd =
    "nodes { id: 'm' ops: 'MatMul' } nodes { id: 'a' ops: 'Add' } edges { from: 'm' to: 'a' }";

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
  return StrJoin(d.what_ifs, "; ", [](const WhatIf& what_if) { return what_if.words; });
}

TEST(Rules, ForbidKeepsAMatchInTwoKernels) {
  Graph graph = GraphOf(kMatMulAddRelu);
  EXPECT_THAT(Labels(PlanWithRules(graph)), ElementsAre("MatMul+Add+Relu"));
  PlannedModel model = PlanWithRules(graph, Rule1(kMatMulAdd, "forbid {}"));
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
  Graph graph = GraphOf(kAttention);
  PlannedModel model = PlanWithRules(
      graph,
      Rule1(StrCat(kScoresSoftmax, "edges { from: 'm' to: 's' through: '*' }"), "forbid {}"));
  for (const PlanGroup& group : model.plan.groups) {
    bool scores = std::count(group.nodes.begin(), group.nodes.end(), 0) > 0;
    bool softmax = std::count(group.nodes.begin(), group.nodes.end(), 3) > 0;
    EXPECT_FALSE(scores && softmax) << group.label;
  }
}

TEST(Rules, ViewsCountForNothingInAForbid) {
  Graph graph = GraphOf(R"(graph "g" {
  %0 = input "x" : f32[8,64]
  %1 = Transpose(%0) {perm=[1, 0]} : f32[64,8]  "" @ ""
  %2 = Tanh(%1) : f32[64,8]  "" @ ""
  output %2
}
)");
  PlannedModel model = PlanWithRules(graph, Rule1("nodes { id: 'a' ops: 'Transpose' } "
                                                  "nodes { id: 'b' ops: 'Tanh' } "
                                                  "edges { from: 'a' to: 'b' }",
                                                  "forbid {}"));
  EXPECT_THAT(Labels(model), ElementsAre("Tanh"));
}

TEST(Rules, ABiasAboveOneDiscourages) {
  Graph graph = GraphOf(kMatMulAddRelu);
  PlannedModel model = PlanWithRules(graph, Rule1(kMatMulAdd, "bias { factor: 50 }"));
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
  PlannedModel plain = PlanWithRules(graph);
  ASSERT_EQ(GroupsWithTwoProducts(plain), 0);
  PlannedModel model = PlanWithRules(graph, Rule1(kBothProducts, "bias { factor: 0.2 }"));
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
      PlanWithRules(graph, Rule1("nodes { id: 'a' ops: 'MatMul' } nodes { id: 'b' ops: 'MatMul' } "
                                 "inputs { nodes: ['a', 'b'] input: 0 }",
                                 "forbid {}"));
  ASSERT_THAT(Labels(apart), Not(SizeIs(1)));
  std::string discouraged = StrCat(
      "rules { name: 'pairs' pattern { nodes { id: 'a' ops: 'MatMul' } nodes { id: 'b' ops: "
      "'MatMul' } inputs { nodes: ['a', 'b'] input: 0 } } bias { factor: 2 } }",
      Rule1(kThree, "bias { factor: 0.1 }"));
  PlannedModel model = PlanWithRules(graph, discouraged);
  EXPECT_THAT(Labels(model), testing::Contains(HasSubstr("MatMul | MatMul | MatMul")));
}

TEST(Rules, ForceKeepsAMatchTogetherInEveryEqualLayer) {
  PlannedModel one = PlanWithRules(Layers(1), Rule1(kBothProducts, "force {}"));
  PlannedModel model = PlanWithRules(Layers(3), Rule1(kBothProducts, "force {}"));
  EXPECT_EQ(GroupsWithTwoProducts(model), 3);
  EXPECT_EQ(model.plan.kernels.size(), one.plan.kernels.size()) << "equal layers share kernels";
  const PlanDecision* group = GroupEntryOf(model.plan, 0);
  ASSERT_NE(group, nullptr);
  EXPECT_THAT(group->reason, HasSubstr("; rule \"r\" keeps nodes of it together"));
  EXPECT_THAT(FlipsOf(*group), HasSubstr("without the rule that forces it"));
}

// A product whose weight is rounded to bf16 once, before the first run; on a device with a unit for
// bf16 its other operand is rounded in every run too.
std::string RoundedProduct(const char* rows) {
  return StrCat(R"(graph "mar" {
  %0 = input "x" : f32[)",
                rows, R"(,768]
  %1 = weight "w" : f32[768,768]
  %2 = weight "b" : f32[768]
  %3 = MatMul(%0, %1) : f32[)",
                rows, R"(,768]  "" @ "mm"
  %4 = Add(%3, %2) : f32[)",
                rows, R"(,768]  "" @ "add"
  %5 = Relu(%4) : f32[)",
                rows, R"(,768]  "" @ "relu"
  output %5
}
)");
}

PlannedModel PlanFast(const Graph& graph, const char* device, std::string_view rules) {
  auto model =
      MakePlan(graph, DeviceNamed(device), {.numerics = Numerics::kFast, .rules = RulesOf(rules)});
  FUSION_CHECK(model.ok(), Message(model.status()));
  return *std::move(model);
}

bool PreparesBf16(const PlannedModel& model) {
  return std::any_of(model.plan.tensors.begin(), model.plan.tensors.end(),
                     [](const PlanTensor& t) { return t.dtype == DType::kBF16; });
}

constexpr const char* kAll =
    "nodes { id: 'm' ops: 'MatMul' } nodes { id: 'a' ops: 'Add' } nodes { id: 'r' ops: 'Relu' } "
    "edges { from: 'm' to: 'a' } edges { from: 'a' to: 'r' }";

TEST(Rules, HoldForNodesOfWhichAPartIsPrepared) {
  const std::pair<const char*, const char*> kPlaces[] = {{"4", "generic-avx2"},
                                                         {"64", "generic-avx512-bf16"}};
  for (const auto& [rows, device] : kPlaces) {
    SCOPED_TRACE(device);
    const Graph graph = GraphOf(RoundedProduct(rows));
    // Forced.
    PlannedModel forced = PlanFast(graph, device, Rule1(kAll, "force {}"));
    EXPECT_TRUE(PreparesBf16(forced));
    ASSERT_THAT(Labels(forced), SizeIs(1));
    const PlanDecision* group = GroupEntryOf(forced.plan, 2);
    ASSERT_NE(group, nullptr);
    EXPECT_THAT(group->reason, HasSubstr("rule \"r\" keeps nodes of it together"));
    // Weighed: what is prepared is no part of the kernel, and the rest is all of the match.
    PlannedModel favoured = PlanFast(graph, device, Rule1(kAll, "bias { factor: 0.5 }"));
    group = GroupEntryOf(favoured.plan, 2);
    ASSERT_NE(group, nullptr);
    EXPECT_THAT(group->reason, HasSubstr("rule \"r\" counts its time as 0.5 of that"));
    // A condition that asks for the match as one kernel has an answer.
    PlannedModel asked =
        PlanFast(graph, device, Rule1(kAll, "when: 'speedup > 0' bias { factor: 0.5 }"));
    group = GroupEntryOf(asked.plan, 2);
    ASSERT_NE(group, nullptr);
    EXPECT_THAT(group->reason, HasSubstr("rule \"r\" counts its time as 0.5 of that"));
  }
}

TEST(Rules, EqualLayersOfWhichOneIsMatchedAreTwoThings) {
  // Only behind the last layer nobody reads.
  const std::string last =
      "nodes { id: 'up' ops: 'MatMul' } nodes { id: 'down' ops: 'MatMul' } nodes { id: 'sum' ops: "
      "'Add' } edges { from: 'up' to: 'down' through: 'Relu' } edges { from: 'down' to: 'sum' }";
  const std::string when = " when: 'readers(sum.output) == 0'";
  Graph graph = Layers(3);
  PlannedModel forced = PlanWithRules(graph, Rule1(last, StrCat("force {}", when)));
  EXPECT_EQ(GroupsWithTwoProducts(forced), 1);
  EXPECT_THAT(Labels(forced).back(), HasSubstr("MatMul+Relu+MatMul"));
  PlannedModel favoured = PlanWithRules(graph, Rule1(last, StrCat("bias { factor: 0.2 }", when)));
  EXPECT_EQ(GroupsWithTwoProducts(favoured), 1);
  EXPECT_THAT(Labels(favoured).back(), HasSubstr("MatMul+Relu+MatMul"));
  // And the other way round: what is one kernel everywhere is two in one place.
  const std::string epilogue =
      "nodes { id: 'down' ops: 'MatMul' } nodes { id: 'sum' ops: 'Add' } "
      "edges { from: 'down' to: 'sum' }";
  std::vector<std::string> plain = Labels(PlanWithRules(graph));
  ASSERT_THAT(plain, Not(testing::Contains("Add")));
  std::vector<std::string> divided =
      Labels(PlanWithRules(graph, Rule1(epilogue, StrCat("forbid {}", when))));
  EXPECT_EQ(std::count(divided.begin(), divided.end(), "Add"), 1);
  EXPECT_EQ(divided.size(), plain.size() + 1);
  EXPECT_EQ(divided.back(), "Add");
}

TEST(Rules, AConditionOnTheKernelMakesAForceGiveWay) {
  Graph graph = Layers(1);
  EXPECT_EQ(GroupsWithTwoProducts(
                PlanWithRules(graph, Rule1(kBothProducts, "force {} when: 'speedup > 1.1'"))),
            0)
      << "one kernel is hardly faster than three";
  EXPECT_EQ(GroupsWithTwoProducts(
                PlanWithRules(graph, Rule1(kBothProducts,
                                           "force {} when: 'speedup > 0' when: 'launches == 3' "
                                           "when: 'time_us < 2 * apart_us' when: 'saved_bytes > 0' "
                                           "when: 'l2_usage > 0'"))),
            1);
  EXPECT_EQ(GroupsWithTwoProducts(PlanWithRules(
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
  absl::StatusOr<PlannedModel> model = TryPlan(GraphOf(kBarrier), Rule1(kAcross, "force {}"));
  EXPECT_THAT(Refused(model),
              AllOf(HasSubstr("rule \"r\" forces node \"tanh\" (Tanh), node \"softmax\" (Softmax) "
                              "into one kernel; there is no such kernel: reshape: ")));
  EXPECT_EQ(std::string(model.status().GetPayload(kFailedNode).value()), "0 2");
  // The same as advice changes nothing.
  EXPECT_TRUE(TryPlan(GraphOf(kBarrier), Rule1(kAcross, "bias { factor: 0.01 }")).ok());
  EXPECT_TRUE(TryPlan(GraphOf(kBarrier), Rule1(kAcross, "force {} when: 'speedup > 0'")).ok());
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
  Graph graph = GraphOf(R"(graph "g" {
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
  EXPECT_THAT(Refused(TryPlan(GraphOf(kMatMulAddRelu), StrCat(Rule1(kMatMulAdd, "force {}"),
                                                              "rules { name: 'never' pattern { ",
                                                              kMatMulAdd, " } forbid {} }"))),
              AllOf(HasSubstr("rule \"r\" forces node \"mm\" (MatMul), node \"add\" (Add)"),
                    HasSubstr("rule: rule \"never\" forbids one kernel")));
}

TEST(Rules, ANodeWhoseKernelFailedCannotBeForced) {
  EXPECT_THAT(Refused(TryPlan(GraphOf(kMatMulAddRelu), Rule1(kMatMulAdd, "force {}"),
                              {{1, "it did not compile"}})),
              HasSubstr("no such kernel: alone: a kernel of a node failed: it did not compile"));
}

TEST(Rules, OverlappingMatchesUnite) {
  // Add belongs to both.
  PlannedModel model =
      PlanWithRules(GraphOf(kMatMulAddRelu),
                    StrCat(Rule1(kMatMulAdd, "force {}"),
                           "rules { name: 'other' pattern { nodes { id: 'a' ops: 'Add' } "
                           "nodes { id: 'b' ops: 'Relu' } edges { from: 'a' to: 'b' } } "
                           "force {} }"));
  EXPECT_THAT(Labels(model), ElementsAre("MatMul+Add+Relu"));
  // Each by itself is possible, both together are not: the barrier is in the middle.
  Graph graph = GraphOf(R"(graph "g" {
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
  Graph graph = GraphOf(R"(graph "g" {
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
  EXPECT_THAT(Labels(PlanWithRules(graph, Rule1(diamond, "force {}"))),
              ElementsAre("Relu+Neg+Add"));
}

TEST(Rules, OneKernelANodeFollowsNone) {
  Graph graph = GraphOf(kMatMulAddRelu);
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

}  // namespace
}  // namespace fusion
