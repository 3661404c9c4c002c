// When the planner splits a reduction: units would idle, and the parts are worth a second phase.
#include "core/plan/cost/split_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/build/builder.h"
#include "core/graph/build/canonical.h"
#include "core/plan/planner.h"
#include "tests/support/whole_program.h"

namespace fusion {
namespace {

// One query on `keys` keys and values.
Graph Decode(int64_t keys) {
  GraphBuilder b;
  TensorId q = b.AddInput("q", {DType::kF32, Shape{1, 64}});
  TensorId k = b.AddInput("k", {DType::kF32, Shape{64, keys}});
  TensorId v = b.AddInput("v", {DType::kF32, Shape{keys, 64}});
  TensorId scores = b.AddNode("MatMul", {q, k}).value();
  TensorId shares = b.AddNode("Softmax", {scores}, {{"axis", int64_t{-1}}}).value();
  b.MarkOutput(b.AddNode("MatMul", {shares, v}).value());
  return b.Build().value();
}

Plan PlanOf(const Graph& graph, int threads, const PlanOptions& options = {}) {
  auto model = MakePlan(Canonicalise(graph).value().graph,
                        DeviceNamed("intel-skylake-server", threads), options);
  FUSION_CHECK(model.ok(), Message(model.status()));
  return std::move(model->plan);
}

TEST(SplitChoice, AttentionOfOneQueryIsSplitBetweenUnits) {
  Plan plan = PlanOf(Decode(8192), 16);
  ASSERT_EQ(plan.launches.size(), 1u);
  EXPECT_EQ(plan.kernels[0].phases, 2);
  EXPECT_EQ(plan.totals.kernels, 2);
  EXPECT_THAT(plan.groups[0].tiles, testing::HasSubstr("_part:1"));
  // A unit has nobody to share with; short sums are over before the parts have met.
  EXPECT_EQ(PlanOf(Decode(8192), 1).kernels[0].phases, 1);
  for (const PlanKernel& kernel : PlanOf(Decode(32), 16).kernels) EXPECT_EQ(kernel.phases, 1);
}

TEST(SplitChoice, ALengthWithoutPartsStaysWhole) {
  for (const PlanKernel& kernel : PlanOf(Decode(8191), 16).kernels) EXPECT_EQ(kernel.phases, 1);
}

TEST(SplitChoice, BitwiseSumsAreNotSplit) {
  PlanOptions options{.numerics = Numerics::kBitwise};
  for (const PlanKernel& kernel : PlanOf(Decode(8192), 16, options).kernels) {
    EXPECT_EQ(kernel.phases, 1);
  }
}

TEST(SplitChoice, ASplitProductReadsItsPackedWeight) {
  GraphBuilder b;
  TensorId x = b.AddInput("x", {DType::kF32, Shape{1, 16384}});
  TensorId w = b.AddWeight("w", {DType::kF32, Shape{16384, 32}});
  b.MarkOutput(b.AddNode("MatMul", {x, w}).value());
  Plan plan = PlanOf(b.Build().value(), 16);
  ASSERT_EQ(plan.launches.size(), 1u);
  const PlanKernel& kernel = plan.kernels[static_cast<size_t>(plan.launches[0].kernel)];
  EXPECT_EQ(kernel.phases, 2);
}

}  // namespace
}  // namespace fusion
