// Random graphs: what a plan computes, fused or one kernel a node, is what the evaluator computes;
// every text form reads back as what was printed.
#include <gtest/gtest.h>

#include <random>

#include "core/bundle/tolerance.h"
#include "core/graph/build/builder.h"
#include "core/graph/build/canonical.h"
#include "core/graph/build/text.h"
#include "core/plan/cost/pin.h"
#include "core/runtime/executor.h"
#include "core/tensor/compare.h"
#include "tests/support/kernel_harness.h"
#include "tests/support/plan_interpreter.h"
#include "tests/support/random_graph.h"

namespace fusion {
namespace {

constexpr uint64_t kGraphs = 150;
constexpr uint64_t kCompiledGraphs = 4;

Graph CanonicalRandomGraph(uint64_t seed) {
  const Graph graph = seed % 4 == 0   ? RandomLoopGraph(seed)
                      : seed % 4 == 2 ? RandomOpaqueGraph(seed)
                                      : RandomGraph(seed);
  auto canonical = Canonicalise(seed % 3 == 0 ? WithRandomStrides(graph, seed) : graph);
  FUSION_CHECK(canonical.ok(), Message(canonical.status()));
  return std::move(canonical->graph);
}

// Sums are taken in another order, and intermediates of a group are not rounded.
constexpr Tolerance kTolerance = {.atol = 2e-5, .rtol = 2e-4};

void ExpectEqual(const std::vector<HostTensor>& got, const std::vector<HostTensor>& wanted,
                 const std::string& what) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  for (size_t o = 0; o < got.size(); ++o) {
    Difference d = Compare(got[o], wanted[o], kTolerance);
    EXPECT_TRUE(d.ok()) << what << ", output " << o << ": " << d.ToString();
  }
}

class RandomGraphs : public ::testing::TestWithParam<uint64_t> {
 protected:
  RandomGraphs() : graph_(CanonicalRandomGraph(GetParam())) {}

  std::string Where() const { return StrCat("seed ", GetParam(), "\n", ToString(graph_)); }

  Graph graph_;
};

TEST_P(RandomGraphs, FusedAndUnfusedEqualTheEvaluator) {
  for (std::string_view name : {"generic-avx2", "intel-skylake-server"}) {
    DeviceSpec device = DeviceNamed(name, 2);
    for (FusionMode mode : {FusionMode::kFused, FusionMode::kOpByOp}) {
      SCOPED_TRACE(StrCat(name, mode == FusionMode::kFused ? " fused" : " op by op"));
      auto model = MakePlan(graph_, device, {.fusion = mode});
      ASSERT_TRUE(model.ok()) << model.status() << "\n" << Where();
      PlanValues values = RandomPlanValues(*model, GetParam());
      auto wanted = EvaluatePlanned(graph_, *model, values);
      ASSERT_TRUE(wanted.ok()) << wanted.status() << "\n" << Where();
      auto got = InterpretPlan(*model, values.inputs, values.weights);
      ASSERT_TRUE(got.ok()) << got.status() << "\n" << Where();
      ExpectEqual(*got, *wanted, Where());
    }
  }
}

TEST_P(RandomGraphs, TextFormsReadBack) {
  std::string text = ToString(graph_);
  auto graph = ParseGraph(text);
  ASSERT_TRUE(graph.ok()) << graph.status() << "\n" << text;
  EXPECT_EQ(ToString(*graph), text);
  for (bool absorb : {false, true}) {
    auto program = BuildProgram(graph_, {.absorb_views = absorb});
    ASSERT_TRUE(program.ok()) << program.status() << "\n" << text;
    auto back = ParseProgram(ToString(*program));
    ASSERT_TRUE(back.ok()) << back.status() << "\n" << ToString(*program);
    EXPECT_EQ(ToString(*back), ToString(*program));
  }
  auto model = MakePlan(graph_, DeviceNamed("generic-avx2", 2), {});
  ASSERT_TRUE(model.ok()) << model.status() << "\n" << text;
  for (const PlannedKernel& kernel : model->kernels) {
    EXPECT_EQ(ToString(kernel.schedule), kernel.text);
    EXPECT_TRUE(Verify(kernel.schedule).ok()) << Verify(kernel.schedule) << "\n" << kernel.text;
    auto schedule = ParseSchedule(kernel.text);
    ASSERT_TRUE(schedule.ok()) << schedule.status() << "\n" << kernel.text;
    EXPECT_EQ(ToString(*schedule), kernel.text);
    std::string reference = ToString(kernel.reference);
    auto back = ParseReference(reference);
    ASSERT_TRUE(back.ok()) << back.status() << "\n" << reference;
    EXPECT_EQ(ToString(*back), reference);
  }
  for (size_t g = 0; g < model->groups.size(); ++g) {
    const std::vector<LoopId>& loops = model->groups[g];
    if (loops.empty() || model->bodies.contains(static_cast<int>(g))) continue;
    if (model->program.op(loops[0]).kind == LoopOp::kOpaque) continue;  // it has no space
    auto smg = BuildSmg(model->program, loops);
    ASSERT_TRUE(smg.ok()) << smg.status() << "\n" << text;
    auto back = ParseSmg(ToString(*smg), model->program);
    ASSERT_TRUE(back.ok()) << back.status() << "\n" << ToString(*smg);
    EXPECT_EQ(*back, *smg) << ToString(*smg);
  }
}

TEST_P(RandomGraphs, ALockGivesThePlanAgain) {
  const DeviceSpec device = DeviceNamed("intel-skylake-server", 2);
  for (FusionMode mode : {FusionMode::kFused, FusionMode::kOpByOp}) {
    PlanOptions options{.fusion = mode};
    auto model = MakePlan(graph_, device, options);
    ASSERT_TRUE(model.ok()) << model.status() << "\n" << Where();
    options.lock = std::make_shared<const PlanLock>(DecisionsOf(*model));
    auto again = MakePlan(graph_, device, options);
    ASSERT_TRUE(again.ok()) << again.status() << "\n" << Where();
    ASSERT_EQ(again->kernels.size(), model->kernels.size()) << Where();
    for (size_t k = 0; k < again->kernels.size(); ++k) {
      EXPECT_EQ(again->kernels[k].text, model->kernels[k].text) << Where();
    }
    EXPECT_EQ(again->plan.loops, model->plan.loops) << Where();
    EXPECT_EQ(again->plan.arena_bytes, model->plan.arena_bytes) << Where();
  }
}

INSTANTIATE_TEST_SUITE_P(All, RandomGraphs, ::testing::Range(uint64_t{1}, kGraphs + 1));

// A product of at least 4096 weights, with more around it: what is rounded, or read as it is
// stored.
Graph RandomProduct(uint64_t seed) {
  std::mt19937_64 random(seed);
  auto below = [&random](uint64_t most) { return random() % most; };
  const auto rows = static_cast<int64_t>(1 + below(12));
  const auto inner = static_cast<int64_t>(64 + below(40));
  const auto columns = static_cast<int64_t>(64 + below(40));
  const bool transposed = below(2) == 0;
  const Shape shape = transposed ? Shape{columns, inner} : Shape{inner, columns};
  GraphBuilder builder;
  TensorId x = builder.AddInput("x", {DType::kF32, Shape{rows, inner}});
  if (below(2) == 0) x = builder.AddNode("Tanh", {x}).value();
  TensorId w = kNoTensor;
  switch (below(4)) {
    case 0: {  // one scale for each column
      const TensorId q = builder.AddWeight("q", {DType::kI8, shape});
      const TensorId s = builder.AddWeight("s", {DType::kF32, Shape{columns}});
      const AttrMap axis = {{"axis", int64_t{transposed ? 0 : 1}}};
      w = builder.AddNode("DequantizeLinear", {q, s}, axis).value();
      break;
    }
    case 1:
      w = builder.AddWeight("w", {DType::kBF16, shape});
      w = builder.AddNode("Cast", {w}, {{"to", std::string("f32")}}).value();
      break;
    default:
      w = builder.AddWeight("w", {DType::kF32, shape});
  }
  TensorId y = builder.AddNode("Gemm", {x, w}, {{"transB", int64_t{transposed ? 1 : 0}}}).value();
  if (below(2) == 0) y = builder.AddNode("Relu", {y}).value();
  if (below(3) == 0) {
    const TensorId bias = builder.AddWeight("b", {DType::kF32, Shape{columns}});
    y = builder.AddNode("Add", {y, bias}).value();
  }
  builder.MarkOutput(y);
  if (below(4) == 0) builder.MarkOutput(w);
  return builder.Build().value();
}

class RandomProducts : public ::testing::TestWithParam<uint64_t> {};

TEST_P(RandomProducts, WithNarrowOperandsEqualTheEvaluator) {
  auto canonical = Canonicalise(RandomProduct(GetParam()));
  ASSERT_TRUE(canonical.ok()) << canonical.status();
  const Graph& graph = canonical->graph;
  for (std::string_view name : {"generic-avx2", "generic-avx512-bf16"}) {
    for (Numerics numerics : {Numerics::kFp32Accumulate, Numerics::kFast}) {
      const DeviceSpec device = DeviceNamed(name, 2);
      auto model = MakePlan(graph, device, {.numerics = numerics});
      ASSERT_TRUE(model.ok()) << model.status() << "\n" << ToString(graph);
      const std::string program = ToString(model->program);
      auto again = ParseProgram(program);
      ASSERT_TRUE(again.ok()) << again.status() << "\n" << program;
      EXPECT_EQ(ToString(*again), program);
      const PlanValues values = RandomPlanValues(*model, GetParam());
      auto got = InterpretPlan(*model, values.inputs, values.weights);
      ASSERT_TRUE(got.ok()) << got.status() << "\n" << ToString(graph);
      auto wanted = EvaluatePlanned(graph, *model, values);
      ASSERT_TRUE(wanted.ok()) << wanted.status() << "\n" << ToString(graph);
      for (size_t o = 0; o < got->size(); ++o) {
        const Difference d = Compare((*got)[o], (*wanted)[o], ToleranceOf(numerics, DType::kF32));
        EXPECT_TRUE(d.ok()) << ToString(graph) << d.ToString();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, RandomProducts, ::testing::Range(uint64_t{0}, uint64_t{40}));

// Compiled, on the executor.
class CompiledRandomGraphs : public ::testing::TestWithParam<uint64_t> {};

TEST_P(CompiledRandomGraphs, FusedAndUnfusedEqualTheEvaluator) {
  std::vector<std::string> devices = RunnableDevices();
  if (devices.empty()) GTEST_SKIP() << "this machine runs none of our kernels";
  Graph graph = CanonicalRandomGraph(1000 + GetParam());
  DeviceSpec device = DeviceNamed(devices[GetParam() % devices.size()], 2);
  for (FusionMode mode : {FusionMode::kFused, FusionMode::kOpByOp}) {
    auto model = MakePlan(graph, device, {.fusion = mode});
    ASSERT_TRUE(model.ok()) << model.status() << "\n" << ToString(graph);
    PlanValues values = RandomPlanValues(*model, GetParam());
    auto wanted = EvaluatePlanned(graph, *model, values);
    ASSERT_TRUE(wanted.ok()) << wanted.status();
    auto executor = CompilePlan(*model, device);
    ASSERT_TRUE(executor.ok()) << executor.status() << "\n" << ToString(graph);
    ASSERT_TRUE(
        (*executor)->Prepare([&](int i) { return &values.weights[static_cast<size_t>(i)]; }).ok());
    auto got = (*executor)->Run(values.inputs);
    ASSERT_TRUE(got.ok()) << got.status();
    ExpectEqual(*got, *wanted, ToString(graph));
  }
}

TEST_P(CompiledRandomGraphs, BitwiseIsTheSameBitsFusedAndUnfused) {
  std::vector<std::string> devices = RunnableDevices();
  if (devices.empty()) GTEST_SKIP() << "this machine runs none of our kernels";
  Graph graph = CanonicalRandomGraph(2000 + GetParam());
  DeviceSpec device = DeviceNamed(devices.back(), 2);
  std::vector<std::vector<HostTensor>> results;
  for (FusionMode mode : {FusionMode::kFused, FusionMode::kOpByOp}) {
    auto model = MakePlan(graph, device, {.fusion = mode, .numerics = Numerics::kBitwise});
    ASSERT_TRUE(model.ok()) << model.status() << "\n" << ToString(graph);
    PlanValues values = RandomPlanValues(*model, GetParam());
    auto executor = CompilePlan(*model, device);
    ASSERT_TRUE(executor.ok()) << executor.status() << "\n" << ToString(graph);
    ASSERT_TRUE(
        (*executor)->Prepare([&](int i) { return &values.weights[static_cast<size_t>(i)]; }).ok());
    auto got = (*executor)->Run(values.inputs);
    ASSERT_TRUE(got.ok()) << got.status();
    results.push_back(*std::move(got));
  }
  for (size_t o = 0; o < results[0].size(); ++o) {
    EXPECT_EQ(results[0][o].byte_view(), results[1][o].byte_view()) << "output " << o << "\n"
                                                                    << ToString(graph);
  }
}

INSTANTIATE_TEST_SUITE_P(All, CompiledRandomGraphs, ::testing::Range(uint64_t{0}, kCompiledGraphs));

}  // namespace
}  // namespace fusion
