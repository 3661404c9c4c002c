// Repeats: loops over the launches of a body.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/graph/build/text.h"
#include "core/graph/evaluate/evaluate.h"
#include "core/plan/cost/pin.h"
#include "tests/support/kernel_harness.h"
#include "tests/support/plan_cases.h"
#include "tests/support/plan_interpreter.h"

namespace fusion {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

PlannedModel PlanOf(const Graph& graph, const PlanOptions& options = {},
                    const std::map<NodeId, std::string>& unfused = {}) {
  auto model = MakePlan(graph, DeviceNamed("intel-skylake-server", 2), options, nullptr, unfused);
  FUSION_CHECK(model.ok(), Message(model.status()));
  return *std::move(model);
}

// What a plan computes for random data, beside the evaluator; the greatest difference of an output,
// by its greatest value.
double Difference(const Graph& graph, const PlannedModel& model) {
  const PlanValues values = RandomPlanValues(model, 7);
  auto planned = InterpretPlan(model, values.inputs, values.weights);
  auto evaluated = EvaluatePlanned(graph, model, values);
  FUSION_CHECK(planned.ok(), Message(planned.status()));
  FUSION_CHECK(evaluated.ok(), Message(evaluated.status()));
  double worst = 0;
  for (size_t i = 0; i < evaluated->size(); ++i) {
    double most = 1e-6;
    double apart = 0;
    for (int64_t e = 0; e < (*evaluated)[i].elements(); ++e) {
      const double expected = (*evaluated)[i].GetDouble(e);
      const double got = (*planned)[i].GetDouble(e);
      if (std::isnan(got) != std::isnan(expected)) return HUGE_VAL;
      most = std::max(most, std::abs(expected));
      apart = std::max(apart, std::abs(got - expected));
    }
    worst = std::max(worst, apart / most);
  }
  return worst;
}

std::vector<double> Elements(const HostTensor& tensor) {
  std::vector<double> out;
  for (int64_t e = 0; e < tensor.elements(); ++e) out.push_back(tensor.GetDouble(e));
  return out;
}

std::vector<std::vector<double>> Results(const PlannedModel& model,
                                         const std::vector<HostTensor>& inputs) {
  auto out = InterpretPlan(model, inputs, {});
  FUSION_CHECK(out.ok(), Message(out.status()));
  std::vector<std::vector<double>> values;
  for (const HostTensor& tensor : *out) values.push_back(Elements(tensor));
  return values;
}

HostTensor F32(Dims dims, std::initializer_list<float> values) {
  return HostTensor::FromValues<float>(DType::kF32, std::move(dims), values);
}
HostTensor I64(int64_t value) { return HostTensor::FromValues<int64_t>(DType::kI64, {}, {value}); }
HostTensor Bool(bool value) {
  HostTensor out(DType::kBool, {});
  out.SetInt(0, value ? 1 : 0);
  return out;
}

TEST(LoopPlan, SumsRowsOneAfterTheOther) {
  // The running sums, the last one first.
  const Graph graph = GraphOf(R"(graph "g" {
  %0 = input "rows" : f32[3,2]
  %1 = input "begin" : f32[2]
  %2, %3 = Repeat(%0, %1) {body=repeat 3 {element f32[2], carried f32[2], %2 = Add(%0, %1), out %2, out_from_end %2}} : f32[2], f32[3,2]  "", "" @ "loop"
  output %2
  output %3
}
)");
  const PlannedModel model = PlanOf(graph);
  ASSERT_EQ(model.plan.loops.size(), 1U);
  EXPECT_EQ(model.plan.loops[0].most, 3);
  EXPECT_EQ(model.plan.launches.size(), 1U);
  EXPECT_EQ(model.plan.totals.launches, 3);
  EXPECT_THAT(Results(model, {F32({3, 2}, {1, 2, 3, 4, 5, 6}), F32({2}, {10, 20})}),
              ElementsAre(ElementsAre(19, 32), ElementsAre(19, 32, 14, 26, 11, 22)));
  EXPECT_LT(Difference(graph, model), 1e-6);
}

// Once before all passes: a product of the body reads them narrow. Its factor keeps passes from
// making more of a difference than the one before left.
TEST(LoopPlan, NarrowsWeightsThatABodyReads) {
  const Graph rounded = GraphOf(R"(graph "g" {
  %0 = input "x" : f32[20,3,64]
  %1 = input "h" : f32[3,64]
  %2 = weight "w" : f32[64,64]
  %3 = const "c" : f32[] {0.01}
  %4 = Repeat(%0, %1, %2, %3) {body=repeat 20 {element f32[3,64], carried f32[3,64], whole f32[64,64], whole f32[], %4 = MatMul(%1, %2), %5 = Mul(%4, %3), %6 = Add(%5, %0), %7 = Tanh(%6), out %7}} : f32[3,64]  "" @ "loop"
  output %4
}
)");
  const PlannedModel model = PlanOf(rounded, {.numerics = Numerics::kFast});
  ASSERT_EQ(model.plan.loops.size(), 1U);
  const bool narrow = std::any_of(
      model.plan.groups.begin(), model.plan.groups.end(),
      [](const PlanGroup& g) { return g.tiles.find("columns of bf16") != std::string::npos; });
  EXPECT_TRUE(narrow);
  EXPECT_LT(Difference(rounded, model), 0x1p-6);
}

TEST(LoopPlan, StatesSeeThePassBefore) {
  // (a, b) -> (b, a + b), and the numbers of the passes.
  const Graph graph = GraphOf(R"(graph "g" {
  %0 = input "a" : f32[1]
  %1 = input "b" : f32[1]
  %2, %3, %4 = Repeat(%0, %1) {body=repeat 6 {pass i64[], carried f32[1], carried f32[1], %3 = Add(%1, %2), %4 = Cast(%0) {to="f32"}, out %2, out %3, out %4}} : f32[1], f32[1], f32[6]  "", "", "" @ "loop"
  output %2
  output %3
  output %4
}
)");
  const PlannedModel model = PlanOf(graph);
  EXPECT_THAT(Results(model, {F32({1}, {0}), F32({1}, {1})}),
              ElementsAre(ElementsAre(8), ElementsAre(13), ElementsAre(0, 1, 2, 3, 4, 5)));
}

TEST(LoopPlan, ARunDecidesHowOften) {
  // v doubles, as often as asked for, until it is 100 or more.
  const Graph graph = GraphOf(R"(graph "g" {
  %0 = input "n" : i64[]
  %1 = input "goes" : bool[]
  %2 = input "v" : f32[]
  %3, %4, %5 = Repeat(%0, %1, %2) {body=repeat 8 counted conditional {carried f32[], %1 = Add(%0, %0), %2 = const f32[] {100}, %3 = Less(%1, %2), out %3, out %1, out %0}} : f32[], f32[8], i64[]  "", "", "" @ "loop"
  output %3
  output %5
}
)");
  const PlannedModel model = PlanOf(graph);
  auto of = [&](int64_t n, bool goes, float v) {
    return Results(model, {I64(n), Bool(goes), F32({}, {v})});
  };
  EXPECT_THAT(of(3, true, 1), ElementsAre(ElementsAre(8), ElementsAre(3)));
  EXPECT_THAT(of(8, true, 20), ElementsAre(ElementsAre(160), ElementsAre(3)));
  EXPECT_THAT(of(0, true, 5), ElementsAre(ElementsAre(5), ElementsAre(0)));
  EXPECT_THAT(of(-4, true, 5), ElementsAre(ElementsAre(5), ElementsAre(0)));
  EXPECT_THAT(of(4, false, 5), ElementsAre(ElementsAre(5), ElementsAre(0)));
  EXPECT_THAT(of(8, true, 0.25), ElementsAre(ElementsAre(64), ElementsAre(8)));
  EXPECT_EQ(model.plan.totals.launches, static_cast<int64_t>(model.plan.launches.size()))
      << "figures are of one pass";
}

TEST(LoopPlan, MayMakeNoPass) {
  const Graph graph = GraphOf(R"(graph "g" {
  %0 = input "rows" : f32[0,2]
  %1 = input "begin" : f32[2]
  %2, %3 = Repeat(%0, %1) {body=repeat 0 {element f32[2], carried f32[2], %2 = Add(%0, %1), out %2, out %2}} : f32[2], f32[0,2]  "", "" @ "loop"
  output %2
  output %3
}
)");
  EXPECT_THAT(Results(PlanOf(graph), {F32({0, 2}, {}), F32({2}, {4, 5})}),
              ElementsAre(ElementsAre(4, 5), ElementsAre()));
}

// Outputs of a body that are no values of its own: an input, a constant, one value twice.
TEST(LoopPlan, BodiesMayHandOnWhatTheyDoNotCompute) {
  const Graph graph = GraphOf(R"(graph "g" {
  %0 = input "a" : f32[2]
  %1 = input "b" : f32[2]
  %2 = input "w" : f32[2]
  %3, %4, %5, %6 = Repeat(%0, %1, %2) {body=repeat 3 {carried f32[2], carried f32[2], whole f32[2], %3 = const f32[2] {7, 8}, out %1, out %0, out %2, out %3}} : f32[2], f32[2], f32[3,2], f32[3,2]  "", "", "", "" @ "loop"
  output %3
  output %4
  output %5
  output %6
}
)");
  EXPECT_THAT(Results(PlanOf(graph), {F32({2}, {1, 2}), F32({2}, {3, 4}), F32({2}, {5, 6})}),
              ElementsAre(ElementsAre(3, 4), ElementsAre(1, 2), ElementsAre(5, 6, 5, 6, 5, 6),
                          ElementsAre(7, 8, 7, 8, 7, 8)));
}

TEST(LoopPlan, HalvesAreCarriedAsTheyAre) {
  const Graph graph = GraphOf(R"(graph "g" {
  %0 = input "x" : f16[20,4,8]
  %1 = input "h" : f16[4,8]
  %2 = weight "w" : f16[8,8]
  %3, %4 = Repeat(%0, %1, %2) {body=repeat 20 {element f16[4,8], carried f16[4,8], whole f16[8,8], %3 = MatMul(%1, %2), %4 = Add(%3, %0), %5 = Tanh(%4), out %5, out_from_end %5}} : f16[4,8], f16[20,4,8]  "", "" @ "loop"
  output %3
  output %4
}
)");
  EXPECT_LT(Difference(graph, PlanOf(graph, {.numerics = Numerics::kBitwise})), 1e-3);
  // Twenty passes of sums that are not rounded between nodes, unlike the evaluator's.
  EXPECT_LT(Difference(graph, PlanOf(graph)), 2e-2);
}

TEST(LoopPlan, MorePassesThanThereIsRoomForAreAnError) {
  const Graph graph = GraphOf(R"(graph "g" {
  %0 = input "n" : i64[]
  %1 = input "v" : f32[]
  %2 = Repeat(%0, %1) {body=repeat 8 must_end counted {carried f32[], %1 = Add(%0, %0), out %1}} : f32[]  "" @ "loop"
  output %2
}
)");
  auto none = [](TensorId) -> absl::StatusOr<const HostTensor*> { return NotFound("no weight"); };
  EXPECT_TRUE(Evaluate(graph, {I64(8), F32({}, {1})}, none).ok());
  EXPECT_EQ(Message(Evaluate(graph, {I64(9), F32({}, {1})}, none).status()),
            "a loop would make more than 8 passes, which is what there is room for; a plan for a "
            "known number has room for that");
}

TEST(LoopPlan, LoopsNest) {
  // Sums of rows of products, element by element: the inner body reads the state of the outer one.
  const Graph graph = GraphOf(R"(graph "g" {
  %0 = input "x" : f32[5,4]
  %1 = input "begin" : f32[]
  %2, %3 = Repeat(%0, %1) {body=repeat 5 {element f32[4], carried f32[], %2, %3 = Repeat(%0, %1) {body=repeat 4 {element_from_end f32[], carried f32[], %2 = Mul(%0, %1), %3 = Tanh(%2), %4 = Add(%1, %3), out %4, out %3}}, out %2, out %3}} : f32[], f32[5,4]  "", "" @ "loop"
  output %2
  output %3
}
)");
  const PlannedModel model = PlanOf(graph);
  ASSERT_EQ(model.plan.loops.size(), 2U);
  EXPECT_LT(Difference(graph, model), 1e-5);
  EXPECT_EQ(CountedRuns(model.plan).back(), 20);
}

constexpr const char* kLstm = R"(graph "g" {
  %0 = input "x" : f32[40,3,5]
  %1 = weight "w" : f32[2,28,5]
  %2 = weight "r" : f32[2,28,7]
  %3 = weight "b" : f32[2,56]
  %4, %5, %6 = LSTM(%0, %1, %2, %3) {direction="bidirectional"} : f32[40,2,3,7], f32[2,3,7], f32[2,3,7]  "", "", "" @ "lstm"
  %7 = Relu(%4) : f32[40,2,3,7]  "" @ "relu"
  output %7
  output %5
  output %6
}
)";

TEST(LoopPlan, ALongRecurrenceIsALoopOfOneStep) {
  const Graph graph = GraphOf(kLstm);
  for (const Numerics numerics : {Numerics::kFp32Accumulate, Numerics::kBitwise}) {
    for (const FusionMode fusion : {FusionMode::kFused, FusionMode::kOpByOp}) {
      PlanOptions options{.fusion = fusion, .numerics = numerics};
      const PlannedModel model = PlanOf(graph, options);
      ASSERT_EQ(model.plan.loops.size(), 2U);
      EXPECT_EQ(model.plan.loops[0].most, 40);
      EXPECT_LT(model.plan.launches.size(), 60U);
      EXPECT_LT(Difference(graph, model), 1e-5);
      EXPECT_FALSE(model.plan.prepare.empty()) << "the recurrent weights are packed once";
    }
  }
  const PlannedModel model = PlanOf(graph);
  EXPECT_LT(model.plan.totals.launches, model.plan.op_by_op.launches);
  EXPECT_GT(model.plan.totals.launches, 80) << "each step is counted";
}

// A member or the plan itself by the decisions of `model`.
PlanOptions Pinned(const PlannedModel& model, PlanOptions options = {}) {
  options.lock = std::make_shared<const PlanLock>(DecisionsOf(model));
  return options;
}

TEST(LoopPlan, ALockPinsBodies) {
  const Graph graph = GraphOf(kLstm);
  const PlannedModel apart = PlanOf(graph, {.fusion = FusionMode::kOpByOp});
  const PlannedModel fused = PlanOf(graph);
  ASSERT_NE(apart.plan.launches.size(), fused.plan.launches.size());
  for (const PlannedModel* model : {&apart, &fused}) {
    const PlanOptions options = Pinned(*model);
    ASSERT_EQ(options.lock->bodies.size(), 2U) << "one direction begins at the end";
    const PlannedModel again = PlanOf(graph, options);
    EXPECT_EQ(again.plan.loops, model->plan.loops);
    ASSERT_EQ(again.kernels.size(), model->kernels.size());
    for (size_t k = 0; k < again.kernels.size(); ++k) {
      EXPECT_EQ(again.kernels[k].text, model->kernels[k].text);
    }
    EXPECT_LT(Difference(graph, again), 1e-5);
  }
}

TEST(LoopPlan, LocksThatDoNotFitBodiesAreRefused) {
  const Graph graph = GraphOf(kLstm);
  const PlanLock good = *Pinned(PlanOf(graph)).lock;
  auto refusal = [&](const std::function<void(PlanLock*)>& damage) {
    PlanLock lock = good;
    damage(&lock);
    PlanOptions options;
    options.lock = std::make_shared<const PlanLock>(std::move(lock));
    auto made = MakePlan(graph, DeviceNamed("intel-skylake-server", 2), options);
    EXPECT_TRUE(absl::IsInvalidArgument(made.status())) << made.status();
    return std::string(Message(made.status()));
  };
  auto repeat = std::find_if(good.groups.begin(), good.groups.end(),
                             [](const LockedGroup& g) { return g.body >= 0; });
  ASSERT_NE(repeat, good.groups.end());
  const auto at = static_cast<size_t>(repeat - good.groups.begin());
  EXPECT_THAT(refusal([&](PlanLock* l) { l->groups[at].body = 7; }),
              HasSubstr(StrCat("lock.groups[", at, "].body: 7; expected 0..1")));
  EXPECT_THAT(refusal([&](PlanLock* l) { l->groups[at].body = -1; }),
              HasSubstr("an op is a repeat; expected a body"));
  EXPECT_THAT(refusal([&](PlanLock* l) { l->groups[at == 0 ? 1 : 0].body = 0; }),
              HasSubstr("a body; expected one op, a repeat"));
  EXPECT_THAT(refusal([&](PlanLock* l) { l->bodies[0].groups[0].choice = 99; }),
              HasSubstr("lock.bodies[0].groups[0].choice: 99; expected 0.."));
  EXPECT_THAT(refusal([&](PlanLock* l) { l->bodies[0].groups.pop_back(); }),
              AllOf(HasSubstr("lock.bodies[0]: lock.groups: op "), HasSubstr(" is in none")));
  EXPECT_THAT(refusal([&](PlanLock* l) {
                l->bodies[0].choices[0].parts[0].grid = {{"no", 1}};
              }),
              AllOf(HasSubstr("lock.bodies[0]: "), HasSubstr("no dim \"no\"")));
}

TEST(LoopPlan, TheLedgerSaysWhyALoopStaysAlone) {
  const Plan plan = PlanOf(GraphOf(kLstm)).plan;
  EXPECT_TRUE(std::any_of(plan.decisions.begin(), plan.decisions.end(), [](const auto& d) {
    return d.subject == DecisionSubject::kPair && d.code == "loop";
  }));
  std::vector<int> told(plan.groups.size(), 0);
  for (const PlanDecision& d : plan.decisions) {
    if (d.subject != DecisionSubject::kGroup) continue;
    for (const DecisionPlace& place : d.places) ++told[static_cast<size_t>(place.first_group)];
  }
  EXPECT_THAT(told, ::testing::Each(1)) << "each group once";
}

// A body of four nodes, which fuse.
constexpr const char* kCell = R"(graph "g" {
  %0 = input "x" : f32[40,3,8]
  %1 = input "h" : f32[3,8]
  %2 = weight "w" : f32[8,8]
  %3, %4 = Repeat(%0, %1, %2) {body=repeat 40 {element f32[3,8], carried f32[3,8], whole f32[8,8], %3 = MatMul(%1, %2), %4 = Add(%3, %0), %5 = Tanh(%4), %6 = Relu(%5), out %5, out %6}} : f32[3,8], f32[40,3,8]  "", "" @ "loop"
  output %3
  output %4
}
)";

TEST(LoopPlan, NodesOfABodyRunAloneWhereTheyAreToStayAlone) {
  const Graph graph = GraphOf(kCell);
  const PlannedModel fused = PlanOf(graph);
  EXPECT_EQ(fused.plan.launches.size(), 1U);
  EXPECT_EQ(fused.plan.op_by_op.launches, 4 * 40);
  const PlannedModel unfused = PlanOf(graph, {}, {{0, "it is wrong"}});
  EXPECT_EQ(unfused.plan.launches.size(), 4U) << "a kernel of the body failed";
  EXPECT_EQ(PlanOf(graph, {.fusion = FusionMode::kOpByOp}).plan.launches.size(), 4U);
  EXPECT_LT(Difference(graph, fused), 1e-5);
  EXPECT_LT(Difference(graph, unfused), 1e-5);
}

TEST(LoopPlan, WhatIsAnOutputTooIsNoWeightOfABody) {
  const Graph graph = GraphOf(R"(graph "g" {
  %0 = input "x" : f32[3,8]
  %1 = weight "w" : f32[8,8]
  %2 = Exp(%1) : f32[8,8]  "" @ "exp"
  %3 = Repeat(%0, %2) {body=repeat 20 {carried f32[3,8], whole f32[8,8], %2 = MatMul(%0, %1), %3 = Tanh(%2), out %3}} : f32[3,8]  "" @ "loop"
  output %2
  output %3
}
)");
  EXPECT_LT(Difference(graph, PlanOf(graph)), 1e-5);
}

TEST(LoopPlan, EqualLoopsShareTheirKernelsAndTotalsDoNotOverflow) {
  const Graph graph = GraphOf(R"(graph "g" {
  %0 = input "x" : f32[2,1024,1024]
  %1 = Repeat(%0) {body=repeat 2000000000 {carried f32[2,1024,1024], %1 = Repeat(%0) {body=repeat 2000000000 {carried f32[2,1024,1024], %1 = Sin(%0), out %1}}, out %1}} : f32[2,1024,1024]  "" @ "a"
  %2 = Repeat(%1) {body=repeat 2000000000 {carried f32[2,1024,1024], %1 = Repeat(%0) {body=repeat 2000000000 {carried f32[2,1024,1024], %1 = Sin(%0), out %1}}, out %1}} : f32[2,1024,1024]  "" @ "b"
  output %2
}
)");
  const Plan plan = PlanOf(graph).plan;
  EXPECT_EQ(plan.loops.size(), 4U);
  EXPECT_LE(plan.kernels.size(), 2U);
  EXPECT_GT(plan.totals.activation_bytes, int64_t{1} << 60);
  EXPECT_GT(plan.op_by_op.activation_bytes, int64_t{1} << 60);
  EXPECT_GT(plan.totals.launches, 0);
}

// A graph with a body that does not fit it.
std::string Misfit(const std::string& body, const std::string& types = "f32[2]") {
  auto graph = ParseGraph(StrCat(R"(graph "g" {
  %0 = input "x" : f32[2]
  %1 = Repeat(%0) {body=)",
                                 body, "} : ", types, "  \"\" @ \"loop\"\n  output %1\n}\n"));
  return graph.ok() ? "" : std::string(Message(graph.status()));
}

TEST(LoopPlan, BodiesMustFit) {
  EXPECT_EQ(Misfit("repeat 3 {carried f32[2], %1 = Neg(%0), out %1}"), "");
  EXPECT_THAT(Misfit("repeat 3 {carried f32[3], %1 = Neg(%0), out %1}"),
              HasSubstr("input 0 is f32[2], its body expects f32[3]"));
  EXPECT_THAT(Misfit("repeat 3 {element f32[], %1 = Neg(%0), out %1}"),
              HasSubstr("input 0 is f32[2], its body expects f32[3]"));
  EXPECT_THAT(Misfit("repeat 3 {carried f32[2], %1 = ReduceSum(%0) {axes=[0]}, out %1}"),
              HasSubstr("carries f32[2] on as f32[1]"));
  EXPECT_THAT(Misfit("repeat 3 {carried f32[2], %1 = Neg(%0)}"),
              HasSubstr("an output for all that is carried"));
  EXPECT_THAT(Misfit("repeat 3 conditional {carried f32[2], %1 = Neg(%0), out %1, out %1}"),
              HasSubstr("has 1 inputs, its body expects 2"));
  EXPECT_THAT(Misfit("repeat -1 {carried f32[2], %1 = Neg(%0), out %1}"), HasSubstr("-1 passes"));
  EXPECT_THAT(Misfit("repeat 3 {carried f32[2], %1 = Neg(%4), out %1}"),
              HasSubstr("a value defined above"));
}

}  // namespace
}  // namespace fusion
