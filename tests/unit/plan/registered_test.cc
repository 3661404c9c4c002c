// Where registered kernels run, and what they are worth there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/plan/cost/tile_candidates.h"
#include "core/plan/obey/follow_registered.h"
#include "tests/support/registered_cases.h"
#include "tests/support/rule_cases.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr const char* kLinear =
    "nodes { id: 'm' ops: 'MatMul' } nodes { id: 'a' ops: 'Add' } edges { from: 'm' to: 'a' }";

std::shared_ptr<RegisteredKernel> Linear() {
  return KernelFor(kLinear, {"m.input0", "m.input1", "a.input1", "a.output"});
}

// Nodes of the groups that run a registered kernel.
std::vector<std::vector<int>> Registered(const PlannedModel& model) {
  std::vector<std::vector<int>> out;
  for (const PlanGroup& group : model.plan.groups) {
    if (!group.registered.empty()) out.push_back(group.nodes);
  }
  return out;
}

TEST(Registered, AForcedKernelComputesItsNodesAndNothingElse) {
  std::shared_ptr<RegisteredKernel> kernel = Linear();
  kernel->force = true;
  kernel->time_us = ParseRuleExpression("1e6", {}).value();
  PlannedModel model = PlanWithKernels(GraphOf(kMatMulAddRelu), {kernel});
  EXPECT_THAT(Registered(model), ElementsAre(std::vector<int>{0, 1}));
  EXPECT_THAT(model.plan.launches, SizeIs(2)) << "Relu cannot join it";
  EXPECT_THAT(model.notes, IsEmpty());
  const PlannedKernel* made = nullptr;
  for (const PlannedKernel& k : model.kernels) {
    if (k.registered != nullptr) made = &k;
  }
  ASSERT_NE(made, nullptr);
  EXPECT_THAT(made->text, AllOf(HasSubstr("call registered"), HasSubstr(Sha256("int x;").ToHex())));
  EXPECT_EQ(ToString(ParseSchedule(made->text).value()), made->text);
  EXPECT_TRUE(Verify(made->schedule).ok());
  EXPECT_THAT(made->reference.params, SizeIs(4));
  // The pair of both groups says why they are two.
  bool told = false;
  for (const PlanDecision& d : model.plan.decisions) told |= d.code == "registered";
  EXPECT_TRUE(told);
  EXPECT_EQ(model.plan.op_by_op.estimated_us,
            PlanWithKernels(GraphOf(kMatMulAddRelu), {}).plan.op_by_op.estimated_us)
      << "the baseline is generated code";
}

TEST(Registered, ACandidateIsTakenWhereItsEstimateWins) {
  Graph graph = GraphOf(kMatMulAddRelu);
  const double generated = PlanWithKernels(graph, {}).plan.totals.estimated_us;
  auto with_time = [&](const std::string& text) {
    std::shared_ptr<RegisteredKernel> kernel = Linear();
    kernel->time_us = ParseRuleExpression(text, {"m", "a"}).value();
    return PlanWithKernels(graph, {kernel});
  };
  PlannedModel cheap = with_time("0.5");
  EXPECT_THAT(Registered(cheap), SizeIs(1));
  EXPECT_LT(cheap.plan.totals.estimated_us, generated);
  PlannedModel dear = with_time("elements(a.output) * 10");
  EXPECT_THAT(Registered(dear), IsEmpty());
  EXPECT_EQ(dear.plan.totals.estimated_us, generated);
}

TEST(Registered, RatesEstimateByFlopsAndBytes) {
  std::shared_ptr<RegisteredKernel> kernel = Linear();
  kernel->force = true;
  kernel->flops_per_us = 2 * 256;
  kernel->bytes_per_us = 1e15;
  PlannedModel model = PlanWithKernels(GraphOf(kMatMulAddRelu), {kernel});
  for (const PlanGroup& group : model.plan.groups) {
    if (group.registered.empty()) continue;
    const Estimate& e = group.estimate;
    EXPECT_GE(e.flops, 2.0 * 128 * 512 * 256);
    EXPECT_DOUBLE_EQ(e.time_us, e.launch_us + e.flops / (2 * 256));
    EXPECT_EQ(e.activation_bytes, 4 * (128 * 256 + 128 * 512));
    EXPECT_EQ(e.weight_bytes, 4 * (256 * 512 + 512));
  }
}

TEST(Registered, EqualPlacesOfLayersAreOneKernel) {
  std::shared_ptr<RegisteredKernel> kernel = KernelFor(
      "nodes { id: 'm' ops: 'MatMul' } nodes { id: 'r' ops: 'Relu' } edges { from: 'm' to: "
      "'r' }",
      {"m.input0", "m.input1", "r.output"});
  kernel->force = true;
  PlannedModel model = PlanWithKernels(Layers(3), {kernel});
  EXPECT_THAT(Registered(model), SizeIs(3));
  int kernels = 0;
  for (const PlannedKernel& k : model.kernels) kernels += k.registered != nullptr ? 1 : 0;
  EXPECT_EQ(kernels, 1);
}

TEST(Registered, PlacesThatDoNotFitAreNotes) {
  Graph graph = GraphOf(kMatMulAddRelu);
  struct {
    std::vector<std::string> params;
    const char* why;
  } const kCases[] = {
      {{"m.input0", "m.input1", "a.output"}, "params lack a tensor f32[512] that the match reads"},
      {{"m.input0", "m.input1", "a.input1"}, "params lack a tensor f32[128,512] that is computed"},
      {{"m.input0", "m.input1", "a.input1", "m.output", "a.output"},
       "params[3] m.output: nothing outside of the match reads it"},
      {{"m.input0", "m.input1", "a.input0", "a.input1", "a.output"},
       "params[2] a.input0: the match does not read it as it is"},
      {{"m.input0", "m.input1", "m.input2", "a.input1", "a.output"},
       "params[2] m.input2: there is none here"},
  };
  for (const auto& bad : kCases) {
    std::shared_ptr<RegisteredKernel> kernel = KernelFor(kLinear, bad.params);
    kernel->force = true;
    PlannedModel model = PlanWithKernels(graph, {kernel});
    EXPECT_THAT(Registered(model), IsEmpty()) << bad.why;
    EXPECT_THAT(model.notes, ElementsAre(AllOf(HasSubstr("registered kernel \"r\" does not run at"),
                                               HasSubstr(bad.why))));
    EXPECT_THAT(model.plan.fallbacks, IsEmpty());
  }
}

TEST(Registered, WhatLiesBetweenItsNodesKeepsThemApart) {
  // Add reads the product twice: by itself, and through a Softmax that is not of the match.
  Graph graph = GraphOf(R"(graph "g" {
  %0 = input "x" : f32[8,16]
  %1 = input "y" : f32[16,32]
  %2 = MatMul(%0, %1) : f32[8,32]  "" @ "m"
  %3 = Softmax(%2) {axis=-1} : f32[8,32]  "" @ "s"
  %4 = Add(%2, %3) : f32[8,32]  "" @ "a"
  output %4
})");
  std::shared_ptr<RegisteredKernel> kernel =
      KernelFor(kLinear, {"m.input0", "m.input1", "a.input1", "m.output", "a.output"});
  kernel->force = true;
  PlannedModel model = PlanWithKernels(graph, {kernel});
  EXPECT_THAT(Registered(model), IsEmpty());
  EXPECT_THAT(model.notes, ElementsAre(HasSubstr("would have to run before and after it")));
  kernel->force = false;
  EXPECT_THAT(Registered(PlanWithKernels(graph, {kernel})), IsEmpty());
}

TEST(Registered, UnusedKernelsAreFallbacksWhereTheyWouldRun) {
  std::shared_ptr<RegisteredKernel> kernel =
      KernelFor(kLinear, {"m.input0", "m.input1", "a.input0", "a.output"});
  PlannedModel model = PlanWithKernels(Layers(1), {kernel}, {{"r", "it was wrong"}});
  EXPECT_THAT(Registered(model), IsEmpty());
  ASSERT_THAT(model.plan.fallbacks, SizeIs(1));
  EXPECT_EQ(model.plan.fallbacks[0].registered, "r");
  EXPECT_EQ(model.plan.fallbacks[0].reason, "it was wrong");
  EXPECT_EQ(model.plan.fallbacks[0].node, 2);
  // Others do not care.
  EXPECT_THAT(PlanWithKernels(GraphOf(kMatMulAddRelu), {}, {{"r", "it was wrong"}}).plan.fallbacks,
              IsEmpty());
}

TEST(Registered, OfForcedKernelsThatOverlapTheFirstRuns) {
  std::shared_ptr<RegisteredKernel> first = Linear();
  std::shared_ptr<RegisteredKernel> second = KernelFor(
      "nodes { id: 'a' ops: 'Add' } nodes { id: 'r' ops: 'Relu' } edges { from: 'a' to: 'r' }",
      {"a.input0", "a.input1", "r.output"});
  first->force = second->force = true;
  second->rule.name = "second";
  PlannedModel model = PlanWithKernels(GraphOf(kMatMulAddRelu), {first, second});
  EXPECT_THAT(Registered(model), ElementsAre(std::vector<int>{0, 1}));
  EXPECT_THAT(model.notes, ElementsAre(HasSubstr("another registered kernel is forced")));
}

// A product whose weights are narrow without a registered kernel: rounded by --numerics fast.
constexpr const char* kRounded = R"(graph "mar" {
  %0 = input "x" : f32[4,768]
  %1 = weight "w" : f32[768,768]
  %2 = weight "b" : f32[768]
  %3 = MatMul(%0, %1) : f32[4,768]  "" @ "mm"
  %4 = Add(%3, %2) : f32[4,768]  "" @ "add"
  %5 = Relu(%4) : f32[4,768]  "" @ "relu"
  output %5
}
)";

// And read as it is stored, with any numerics but bitwise ones.
constexpr const char* kStored = R"(graph "mar" {
  %0 = input "x" : f32[4,768]
  %1 = weight "q" : i8[768,768]
  %2 = weight "s" : f32[768]
  %3 = weight "b" : f32[768]
  %4 = DequantizeLinear(%1, %2) {axis=1} : f32[768,768]  "" @ "dq"
  %5 = MatMul(%0, %4) : f32[4,768]  "" @ "mm"
  %6 = Add(%5, %3) : f32[4,768]  "" @ "add"
  output %6
}
)";

absl::StatusOr<PlannedModel> PlanIn(Numerics numerics, const Graph& graph,
                                    RegisteredKernels kernels,
                                    std::map<std::string, std::string> unused = {}) {
  return MakePlan(graph, Cpu(), {.numerics = numerics}, nullptr, {},
                  {.kernels = std::move(kernels), .unused = std::move(unused)});
}

bool HasNarrowProduct(const PlannedModel& model) {
  return std::any_of(model.plan.groups.begin(), model.plan.groups.end(), [](const PlanGroup& g) {
    return g.tiles.find(" by columns of") != std::string::npos;
  });
}

TEST(Registered, RunsWhereProductsWouldBeNarrow) {
  for (const auto& [numerics, text] :
       {std::pair(Numerics::kFast, kRounded), std::pair(Numerics::kFp32Accumulate, kStored)}) {
    const Graph graph = GraphOf(text);
    auto plain = PlanIn(numerics, graph, {});
    ASSERT_TRUE(plain.ok()) << plain.status();
    ASSERT_TRUE(HasNarrowProduct(*plain));
    std::shared_ptr<RegisteredKernel> kernel = Linear();
    for (bool force : {true, false}) {
      kernel->force = force;
      kernel->time_us = force ? std::vector<RuleStep>{} : ParseRuleExpression("0.5", {}).value();
      auto model = PlanIn(numerics, graph, {kernel});
      ASSERT_TRUE(model.ok()) << model.status();
      EXPECT_THAT(Registered(*model), SizeIs(1)) << force;
      EXPECT_THAT(model->notes, IsEmpty());
      EXPECT_FALSE(HasNarrowProduct(*model));
    }
    // Where it does not run the plan is what it is on a server without it, and says why.
    kernel->time_us = ParseRuleExpression("1e6", {}).value();
    auto dear = PlanIn(numerics, graph, {kernel});
    ASSERT_TRUE(dear.ok()) << dear.status();
    EXPECT_THAT(Registered(*dear), IsEmpty());
    EXPECT_TRUE(HasNarrowProduct(*dear));
    EXPECT_EQ(dear->plan.totals.estimated_us, plain->plan.totals.estimated_us);
    EXPECT_EQ(ToString(dear->program), ToString(plain->program));
    auto unused = PlanIn(numerics, graph, {kernel}, {{"r", "it was wrong"}});
    ASSERT_TRUE(unused.ok()) << unused.status();
    EXPECT_EQ(ToString(unused->program), ToString(plain->program));
    ASSERT_THAT(unused->plan.fallbacks, SizeIs(1));
    EXPECT_EQ(unused->plan.fallbacks[0].reason, "it was wrong");
  }
}

// What its conditions ask of generated code does not keep its place from being one.
TEST(Registered, RunsOnAConditionOnTheMatchAsAKernelWhereProductsWouldBeNarrow) {
  std::shared_ptr<RegisteredKernel> kernel = Linear();
  kernel->force = true;
  kernel->rule = RulesOf(Rule1(kLinear, "when: 'speedup > 0' force {}"))[0];
  auto model = PlanIn(Numerics::kFast, GraphOf(kRounded), {kernel});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(Registered(*model), SizeIs(1));
}

// Products that a registered kernel might run keep their operands until it is known that it does
// not, so the ops that were measured are those of the last of several passes.
TEST(Registered, OtherKernelsAreCutAsMeasured) {
  constexpr const char* kTwo = R"(graph "two" {
  %0 = input "x" : f32[4,768]
  %1 = weight "w" : f32[768,768]
  %2 = weight "b" : f32[768]
  %3 = weight "v" : f32[768,512]
  %4 = MatMul(%0, %1) : f32[4,768]  "" @ "mm"
  %5 = Add(%4, %2) : f32[4,768]  "" @ "add"
  %6 = MatMul(%5, %3) : f32[4,512]  "" @ "mm2"
  %7 = Relu(%6) : f32[4,512]  "" @ "relu"
  output %7
}
)";
  // In the first pass the ops of the last product have the positions that those of the one before
  // have in the last pass, and fewer columns than some tiles that may be tried of that.
  constexpr const char* kThree = R"(graph "three" {
  %0 = input "x" : f32[4,768]
  %1 = weight "w" : f32[768,768]
  %2 = weight "b" : f32[768]
  %3 = weight "v" : f32[768,2048]
  %4 = weight "c" : f32[2048]
  %5 = weight "u" : f32[2048,512]
  %6 = weight "d" : f32[512]
  %7 = MatMul(%0, %1) : f32[4,768]  "" @ "mm"
  %8 = Add(%7, %2) : f32[4,768]  "" @ "add"
  %9 = MatMul(%8, %3) : f32[4,2048]  "" @ "mm2"
  %10 = Add(%9, %4) : f32[4,2048]  "" @ "add2"
  %11 = MatMul(%10, %5) : f32[4,512]  "" @ "mm3"
  %12 = Add(%11, %6) : f32[4,512]  "" @ "add3"
  output %12
}
)";
  const DeviceSpec device = Cpu();
  const PlanOptions options{.numerics = Numerics::kFast};
  for (bool runs : {true, false}) {
    const Graph graph = GraphOf(runs ? kTwo : kThree);
    std::shared_ptr<RegisteredKernel> kernel = Linear();
    kernel->force = runs;
    kernel->time_us = runs ? std::vector<RuleStep>{} : ParseRuleExpression("1e6", {}).value();
    const RegisteredOptions registered{.kernels = {kernel}, .unused = {}};
    auto model = MakePlan(graph, device, options, nullptr, {}, registered);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_THAT(Registered(*model), SizeIs(runs ? 1 : 0));
    ASSERT_TRUE(HasNarrowProduct(*model));

    TileChoices choices(*model, device, options, nullptr);
    EXPECT_EQ(choices.left_out(), runs ? "1 kernel registered, not generated" : "");
    int tried = 0;
    for (const TunableKernel& tunable : choices.kernels()) {
      const std::vector<TileCandidate> others = choices.Others(tunable, 15).value();
      for (const TileCandidate& other : others) {
        TunedKernel tuned{.ops = tunable.ops, .chosen = 1};
        tuned.tried = {{.choice = tunable.pick, .tiles = "the model's"},
                       {.choice = other.choice, .tiles = other.tiles}};
        const TileSearch search{
            .level = 1, .state = TileSearchState::kDone, .kernels = {std::move(tuned)}};
        auto searched = MakePlan(graph, device, options, nullptr, {}, registered, &search);
        ASSERT_TRUE(searched.ok()) << searched.status();
        EXPECT_EQ(searched->groups, model->groups);
        EXPECT_EQ(Registered(*searched), Registered(*model));
        EXPECT_EQ(searched->plan.fallbacks, model->plan.fallbacks);
        ASSERT_THAT(searched->plan.search.kernels, SizeIs(1));
        const int group = searched->plan.search.kernels[0].group;
        ASSERT_GE(group, 0);
        const int at = searched->plan.groups[static_cast<size_t>(group)].kernel;
        EXPECT_EQ(searched->kernels[static_cast<size_t>(at)].text, other.kernel.text);
        ++tried;
      }
    }
    EXPECT_GT(tried, 0);
  }
}

TEST(RegisteredKernels, EveryFieldIsInTheirText) {
  const RegisteredKernel plain = *Linear();
  std::set<std::string> texts = {KeyText(RegisteredKernels{})};
  auto add = [&](auto change) {
    auto kernel = std::make_shared<RegisteredKernel>(plain);
    change(kernel.get());
    EXPECT_TRUE(texts.insert(KeyText(RegisteredKernels{kernel})).second) << texts.size();
  };
  using K = RegisteredKernel;
  add([](K*) {});
  add([](K* k) { k->rule.name = "other"; });
  add([](K* k) { k->rule.nodes[0].ops = {"Gemm"}; });
  add([](K* k) { k->rule.when.push_back(ParseRuleCondition("units > 1", {}).value()); });
  add([](K* k) { k->param_texts[0] = "m.input1"; });
  add([](K* k) { k->constants.push_back({.name = "A", .text = "1"}); });
  add([](K* k) { k->constants.push_back({.name = "B", .text = "1"}); });
  add([](K* k) { k->constants.push_back({.name = "A", .text = "2"}); });
  add([](K* k) { k->constants.push_back({.name = "A", .integer = true, .text = "1"}); });
  add([](K* k) { k->phases = 2; });
  add([](K* k) { k->isas = {"avx2"}; });
  add([](K* k) { k->force = true; });
  add([](K* k) { k->time_text = "3"; });
  add([](K* k) { k->flops_per_us = 3; });
  add([](K* k) { k->bytes_per_us = 3; });
  add([](K* k) { k->source_sha256 = Sha256("int y;"); });
  EXPECT_EQ(KeyText(RegisteredKernels{}), "");
}

}  // namespace
}  // namespace fusion
