// Rules and registered kernels in the bodies of loops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "absl/strings/cord.h"
#include "core/graph/build/body_graph.h"
#include "core/plan/cost/pin.h"
#include "tests/support/kernel_harness.h"
#include "tests/support/plan_interpreter.h"
#include "tests/support/registered_cases.h"
#include "tests/support/rule_cases.h"

namespace fusion {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// A body of four nodes, which fuse. Behind it a node that is none of its.
constexpr const char* kCell = R"(graph "g" {
  %0 = input "x" : f32[40,3,8]
  %1 = input "h" : f32[3,8]
  %2 = weight "w" : f32[8,8]
  %3, %4 = Repeat(%0, %1, %2) {body=repeat 40 {element f32[3,8], carried f32[3,8], whole f32[8,8], %3 = MatMul(%1, %2), %4 = Add(%3, %0), %5 = Tanh(%4), %6 = Relu(%5), out %5, out %6}} : f32[3,8], f32[40,3,8]  "", "" @ "loop"
  %5 = Exp(%3) : f32[3,8]  "" @ "exp"
  output %4
  output %5
}
)";

constexpr const char* kMatMulAdd =
    "nodes { id: 'm' ops: 'MatMul' } nodes { id: 'a' ops: 'Add' } edges { from: 'm' to: 'a' }";

std::string Edge(const std::string& from, const std::string& to) {
  return StrCat("nodes { id: 'p' ops: '", from, "' } nodes { id: 'q' ops: '", to,
                "' } edges { from: 'p' to: 'q' }");
}

// Whether the plan computes what the evaluator does.
void ExpectRight(const Graph& graph, const PlannedModel& model) {
  const PlanValues values = RandomPlanValues(model, 7);
  auto planned = InterpretPlan(model, values.inputs, values.weights);
  auto evaluated = EvaluatePlanned(graph, model, values);
  ASSERT_TRUE(planned.ok()) << planned.status();
  ASSERT_TRUE(evaluated.ok()) << evaluated.status();
  for (size_t i = 0; i < evaluated->size(); ++i) {
    for (int64_t e = 0; e < (*evaluated)[i].elements(); ++e) {
      const double expected = (*evaluated)[i].GetDouble(e);
      ASSERT_NEAR((*planned)[i].GetDouble(e), expected, 1e-4 * (1 + std::abs(expected)));
    }
  }
}

TEST(BodyRules, AForbidKeepsAMatchInTwoKernels) {
  const Graph graph = GraphOf(kCell);
  EXPECT_THAT(Labels(PlanWithRules(graph)), ElementsAre("MatMul+Add+Tanh+Relu", "Exp"));
  const PlannedModel model = PlanWithRules(graph, Rule1(kMatMulAdd, "forbid {}"));
  EXPECT_THAT(Labels(model), ElementsAre("MatMul", "Add+Tanh+Relu", "Exp"));
  ExpectRight(graph, model);
  bool told = false;
  for (const PlanDecision& d : model.plan.decisions) {
    if (d.code != "rule") continue;
    told = true;
    EXPECT_EQ(d.reason,
              "rule \"r\" forbids one kernel with something of all 2 nodes of MatMul+Add");
    EXPECT_THAT(Labels(model)[0],
                model.plan.groups[static_cast<size_t>(d.places[0].first_group)].label);
  }
  EXPECT_TRUE(told);
  EXPECT_EQ(model.plan.op_by_op.launches, PlanWithRules(graph).plan.op_by_op.launches)
      << "the baseline follows none";
}

TEST(BodyRules, ABiasWeighsAndConditionsAreOfTheBody) {
  const Graph graph = GraphOf(kCell);
  auto labels = [&](const std::string& rest) {
    return Labels(PlanWithRules(graph, Rule1(kMatMulAdd, rest)));
  };
  EXPECT_THAT(labels("bias { factor: 50 }"), ElementsAre("MatMul", "Add+Tanh+Relu", "Exp"));
  EXPECT_THAT(labels("forbid {} when: 'dim(m.output, 0) == 3' when: 'constant(m.input1) == 1' "
                     "when: 'constant(m.input0) == 0' when: 'readers(a.output) == 1' "
                     "when: 'launches == 2'"),
              SizeIs(3));
  EXPECT_THAT(labels("forbid {} when: 'rank(m.output) == 3'"), SizeIs(2));
  EXPECT_THAT(labels("forbid {} when: 'constant(a.input1) == 1'"), SizeIs(2))
      << "each pass has another element";
}

TEST(BodyRules, NoPatternSpansTheBoundaryOfABody) {
  const Graph graph = GraphOf(kCell);
  // "Tanh" gives what the node behind the loop reads.
  const PlannedModel model = PlanWithRules(graph, Rule1(Edge("Tanh", "Exp"), "force {}"));
  EXPECT_THAT(Labels(model), ElementsAre("MatMul+Add+Tanh+Relu", "Exp"));
}

TEST(BodyRules, AForceKeepsAMatchTogether) {
  const Graph graph = GraphOf(R"(graph "g" {
  %0 = input "x" : f32[128,768]
  %1 = weight "up" : f32[768,3072]
  %2 = weight "down" : f32[3072,768]
  %3 = Repeat(%0, %1, %2) {body=repeat 20 {carried f32[128,768], whole f32[768,3072], whole f32[3072,768], %3 = MatMul(%0, %1), %4 = Relu(%3), %5 = MatMul(%4, %2), %6 = Tanh(%5), out %6}} : f32[128,768]  "" @ "loop"
  output %3
}
)");
  const std::string pattern =
      "nodes { id: 'u' ops: 'MatMul' } nodes { id: 'd' ops: 'MatMul' } "
      "edges { from: 'u' to: 'd' through: 'Relu' }";
  EXPECT_THAT(Labels(PlanWithRules(graph)), ElementsAre("MatMul+Relu", "MatMul+Tanh"));
  const PlannedModel model = PlanWithRules(graph, Rule1(pattern, "force {}"));
  ASSERT_THAT(Labels(model), Contains(HasSubstr("MatMul+Relu+MatMul")));
  bool told = false;
  for (const PlanDecision& d : model.plan.decisions) {
    told |= d.reason.find("rule \"r\" keeps nodes of it together") != std::string::npos;
  }
  EXPECT_TRUE(told);
}

TEST(BodyRules, WhatNoKernelHoldsIsAnErrorThatNamesRuleAndLoop) {
  const Graph graph = GraphOf(R"(graph "g" {
  %0 = input "x" : f32[3,20]
  %1 = Neg(%0) : f32[3,20]  "" @ "neg"
  %2 = Repeat(%1) {body=repeat 20 {carried f32[3,20], %1 = Exp(%0), %2 = Reshape(%1) {shape=[4, 15]}, %3 = Tanh(%2), %4 = Softmax(%3), %5 = Reshape(%4) {shape=[3, 20]}, out %5}} : f32[3,20]  "" @ "loop"
  output %2
}
)");
  const std::string pattern =
      "nodes { id: 'a' ops: 'Exp' } nodes { id: 'b' ops: 'Softmax' } "
      "edges { from: 'a' to: 'b' through: '*' }";
  const absl::Status failed = TryPlan(graph, Rule1(pattern, "force {}")).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(failed)) << failed;
  EXPECT_THAT(std::string(Message(failed)),
              HasSubstr("rule \"r\" forces Exp, Tanh, Softmax into one kernel in the body of node "
                        "\"loop\" (Repeat); there is no such kernel: reshape: "));
  EXPECT_EQ(failed.GetPayload(kFailedNode), absl::Cord("1"));
  EXPECT_EQ(failed.GetPayload(kFailedRules), absl::Cord("0"));
  // With a condition on the kernel it gives way.
  EXPECT_TRUE(TryPlan(graph, Rule1(pattern, "force {} when: 'speedup > 0'")).ok());
}

TEST(BodyRules, AForceEndsWhereAKernelOfTheLoopFailed) {
  const absl::Status failed =
      TryPlan(GraphOf(kCell), Rule1(kMatMulAdd, "force {}"), {{0, "it is wrong"}}).status();
  EXPECT_THAT(std::string(Message(failed)), HasSubstr("a kernel of a node failed: it is wrong"));
}

TEST(BodyRules, ALockHoldsWhateverTheySay) {
  const Graph graph = GraphOf(kCell);
  const PlannedModel forbidden = PlanWithRules(graph, Rule1(kMatMulAdd, "forbid {}"));
  const std::string impossible =
      "nodes { id: 'p' ops: 'MatMul' } nodes { id: 'q' ops: 'Relu' } "
      "edges { from: 'p' to: 'q' through: '*' }";
  for (const std::string& rules :
       {std::string(), Rule1(kMatMulAdd, "forbid {}"), Rule1(impossible, "force {}")}) {
    PlanOptions options{.rules = RulesOf(rules)};
    options.lock = std::make_shared<const PlanLock>(DecisionsOf(forbidden));
    auto pinned = MakePlan(graph, Cpu(), options);
    ASSERT_TRUE(pinned.ok()) << pinned.status();
    EXPECT_EQ(Labels(*pinned), Labels(forbidden));
  }
}

TEST(BodyRules, OneKernelANodeFollowsNone) {
  PlanOptions options{.fusion = FusionMode::kOpByOp,
                      .rules = RulesOf(Rule1(Edge("Tanh", "Relu"), "force {}"))};
  auto model = MakePlan(GraphOf(kCell), Cpu(), options);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(Labels(*model), ElementsAre("MatMul", "Add", "Tanh", "Relu", "Exp"));
}

constexpr const char* kNested = R"(graph "g" {
  %0 = input "x" : f32[5,3,8]
  %1 = input "h" : f32[3,8]
  %2 = weight "w" : f32[8,8]
  %3 = Repeat(%0, %1, %2) {body=repeat 5 {element f32[3,8], carried f32[3,8], whole f32[8,8], %3 = Repeat(%1, %0, %2) {body=repeat 7 {carried f32[3,8], whole f32[3,8], whole f32[8,8], %3 = MatMul(%0, %2), %4 = Add(%3, %1), %5 = Softmax(%4) {axis=1}, out %5}}, %4 = Repeat(%3, %0, %2) {body=repeat 7 {carried f32[3,8], whole f32[3,8], whole f32[8,8], %3 = MatMul(%0, %2), %4 = Add(%3, %1), %5 = Softmax(%4) {axis=-1}, out %5}}, %5 = MatMul(%4, %2), %6 = Add(%5, %0), out %6}} : f32[3,8]  "" @ "loop"
  output %3
}
)";

TEST(BodyRules, BodiesWithinBodiesHaveTheirOwn) {
  const Graph graph = GraphOf(kNested);
  EXPECT_THAT(Labels(PlanWithRules(graph)), SizeIs(3));
  const PlannedModel all = PlanWithRules(graph, Rule1(kMatMulAdd, "forbid {}"));
  EXPECT_THAT(Labels(all), SizeIs(6));
  ExpectRight(graph, all);
  // Of the two that compute the same: what a node says tells them apart.
  const PlannedModel first = PlanWithRules(
      graph, Rule1(Edge("Add", "Softmax"), "forbid {} when: 'attr(q, axis, 0) == 1'"));
  EXPECT_THAT(Labels(first), SizeIs(4));
  ExpectRight(graph, first);
}

TEST(BodyRules, ACompositeOfABodyIsOneNode) {
  const Graph graph = GraphOf(kNested);
  const std::string inner =
      "nodes { id: 'e' ops: 'Exp' } nodes { id: 'd' ops: '*' } edges { from: 'e' to: 'd' }";
  EXPECT_EQ(Labels(PlanWithRules(graph, Rule1(inner, "forbid {}"))), Labels(PlanWithRules(graph)));
  const PlannedModel model = PlanWithRules(graph, Rule1(Edge("Add", "Softmax"), "forbid {}"));
  for (const std::string& label : Labels(model)) {
    EXPECT_FALSE(label.find("Add") < label.find("ReduceMax") &&
                 label.find("ReduceMax") != std::string::npos)
        << label;
  }
}

// What a recurrence repeats is its decomposition; rules see one node, alone or in a body.
TEST(BodyRules, StepsOfARecurrenceAreNoNodes) {
  const Graph outside = GraphOf(R"(graph "g" {
  %0 = input "x" : f32[40,3,5]
  %1 = weight "w" : f32[1,28,5]
  %2 = weight "r" : f32[1,28,7]
  %3 = LSTM(%0, %1, %2) : f32[40,1,3,7]  "" @ "lstm"
  output %3
}
)");
  const Graph within = GraphOf(R"(graph "g" {
  %0 = input "x" : f32[20,40,3,5]
  %1 = weight "w" : f32[1,28,5]
  %2 = weight "r" : f32[1,28,7]
  %3 = Repeat(%0, %1, %2) {body=repeat 20 {element f32[40,3,5], whole f32[1,28,5], whole f32[1,28,7], %3 = LSTM(%0, %1, %2), out %3}} : f32[20,40,1,3,7]  "" @ "loop"
  output %3
}
)");
  for (const Graph* graph : {&outside, &within}) {
    const PlannedModel plain = PlanWithRules(*graph);
    const PlannedModel ruled = PlanWithRules(*graph, Rule1(Edge("*", "*"), "forbid {}"));
    EXPECT_EQ(Labels(ruled), Labels(plain));
    ASSERT_EQ(ruled.kernels.size(), plain.kernels.size());
    for (size_t k = 0; k < plain.kernels.size(); ++k) {
      EXPECT_EQ(ruled.kernels[k].text, plain.kernels[k].text);
    }
  }
}

// Steps that are taken apart, that are views, and that a model gave no number.
TEST(BodyRules, NodesOfABodyAreItsSteps) {
  const Graph graph = GraphOf(R"(graph "g" {
  %0 = input "x" : f32[8,8]
  %1 = input "like" : f16[1]
  %2 = weight "w" : f32[8,8]
  %3, %4 = Repeat(%0, %1, %2) {body=repeat 20 {carried f32[8,8], whole f16[1], whole f32[8,8], %3 = const f32[8] {1, 2, 3, 4, 5, 6, 7, 8}, %4 = CastLike(%0, %1), %5 = CastLike(%4, %2), %6 = Transpose(%5) {perm=[1, 0]}, %7 = MatMul(%6, %2), %8 = Add(%7, %3), %9 = Softmax(%8), %10 = Transpose(%9) {perm=[1, 0]}, out %10, out %5}} : f32[8,8], f32[20,8,8]  "", "" @ "loop"
  output %3
  output %4
}
)");
  auto program = BuildProgram(graph);
  ASSERT_TRUE(program.ok()) << program.status();
  const ProgramLoop* loop = nullptr;
  for (const LoopOp& op : program->ops) {
    if (op.kind == LoopOp::kRepeat) loop = op.loop.get();
  }
  ASSERT_NE(loop, nullptr);
  ASSERT_NE(loop->source, nullptr);
  auto body = BodyGraph(*loop);
  ASSERT_TRUE(body.ok()) << body.status();
  EXPECT_TRUE(Verify(*body).ok());
  EXPECT_THAT(body->nodes(), SizeIs(7));
  EXPECT_EQ(body->tensor(2).kind, TensorKind::kWeight);
  for (const LoopOp& op : loop->body->ops) {
    ASSERT_GE(op.step, 1) << op.label;
    const std::string& node = body->node(op.step - 1).def->name;
    const std::string expected = op.label == "Copy"  ? "Transpose"
                                 : op.label == "Exp" ? "Softmax"
                                                     : op.label;
    if (op.label == "MatMul" || op.label == "Add" || expected != op.label) {
      EXPECT_EQ(node, expected);
    }
  }
  for (const Value& value : loop->body->values) {
    if (value.tensor == kNoTensor) continue;
    EXPECT_EQ(value.type, body->tensor(value.tensor).type);
  }
  const PlannedModel model = PlanWithRules(graph, Rule1(kMatMulAdd, "forbid {}"));
  for (const std::string& label : Labels(model)) {
    EXPECT_EQ(label.find("MatMul+Add"), std::string::npos) << label;
  }
}

// ---- registered kernels ----

std::shared_ptr<RegisteredKernel> Linear() {
  auto kernel = KernelFor(kMatMulAdd, {"m.input0", "m.input1", "a.input1", "a.output"});
  kernel->force = true;
  return kernel;
}

TEST(BodyRegistered, AForcedKernelRunsInEveryPass) {
  const Graph graph = GraphOf(kCell);
  const PlannedModel model = PlanWithKernels(graph, {Linear()});
  EXPECT_THAT(model.notes, IsEmpty());
  ASSERT_THAT(Labels(model), ElementsAre("MatMul+Add", "Tanh+Relu", "Exp"));
  const PlanGroup& group = model.plan.groups[static_cast<size_t>(model.plan.launches[0].group)];
  EXPECT_EQ(group.registered, "r");
  EXPECT_THAT(group.nodes, ElementsAre(0));
  const PlannedKernel& kernel = model.kernels[static_cast<size_t>(group.kernel)];
  ASSERT_NE(kernel.registered, nullptr);
  EXPECT_THAT(kernel.reference.params, SizeIs(4));
  EXPECT_EQ(model.plan.loops[0].launches, 2);
  EXPECT_EQ(model.plan.op_by_op.estimated_us, PlanWithKernels(graph, {}).plan.op_by_op.estimated_us)
      << "the baseline is generated code";
}

TEST(BodyRegistered, CandidatesCompete) {
  const Graph graph = GraphOf(kCell);
  auto kernel = Linear();
  kernel->force = false;
  kernel->time_us = ParseRuleExpression("1000", {}).value();
  EXPECT_THAT(Labels(PlanWithKernels(graph, {kernel})), SizeIs(2));
  kernel->time_us = ParseRuleExpression("0.001", {}).value();
  EXPECT_THAT(Labels(PlanWithKernels(graph, {kernel})),
              ElementsAre("MatMul+Add", "Tanh+Relu", "Exp"));
}

TEST(BodyRegistered, PlacesThatDoNotFitAreNotes) {
  auto kernel = KernelFor(kMatMulAdd, {"m.input0", "m.input1", "a.output"});
  kernel->force = true;
  const PlannedModel model = PlanWithKernels(GraphOf(kCell), {kernel});
  EXPECT_THAT(model.notes, ElementsAre(HasSubstr("in the body of a loop: params lack a tensor")));
  EXPECT_THAT(Labels(model), SizeIs(2));
}

// An operand that the body sees through a view is not that tensor.
TEST(BodyRegistered, ViewsOfOperandsAreNoParams) {
  const PlannedModel model = PlanWithKernels(GraphOf(R"(graph "g" {
  %0 = input "x" : f32[40,3,8]
  %1 = input "h" : f32[3,8]
  %2 = weight "w" : f32[8,8]
  %3 = Transpose(%2) {perm=[1, 0]} : f32[8,8]  "" @ "t"
  %4 = Repeat(%0, %1, %3) {body=repeat 40 {element f32[3,8], carried f32[3,8], whole f32[8,8], %3 = MatMul(%1, %2), %4 = Add(%3, %0), out %4}} : f32[3,8]  "" @ "loop"
  output %4
}
)"),
                                             {Linear()});
  EXPECT_THAT(model.notes, ElementsAre(HasSubstr("params[1] m.input1: the match does not read")));
}

TEST(BodyRegistered, OnesThatFailedLeaveTheLoopAFallback) {
  const Graph graph = GraphOf(kNested);
  const PlannedModel model = PlanWithKernels(graph, {Linear()}, {{"r", "it was wrong"}});
  EXPECT_EQ(Labels(model), Labels(PlanWithKernels(graph, {})));
  ASSERT_THAT(model.plan.fallbacks, SizeIs(1));
  EXPECT_EQ(model.plan.fallbacks[0].registered, "r");
  EXPECT_EQ(model.plan.fallbacks[0].reason, "it was wrong");
  EXPECT_EQ(model.plan.fallbacks[0].node, 0);
  // All three bodies have one.
  int runs = 0;
  for (const PlanGroup& group : PlanWithKernels(graph, {Linear()}).plan.groups) {
    runs += group.registered.empty() ? 0 : 1;
  }
  EXPECT_EQ(runs, 3);
}

TEST(BodyRegistered, NoneRunsInALoopThatIsToStayAlone) {
  auto model = MakePlan(GraphOf(kCell), Cpu(), {}, nullptr, {{0, "it is wrong"}},
                        {.kernels = {Linear()}, .unused = {}});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(Labels(*model), SizeIs(5));
}

}  // namespace
}  // namespace fusion
