// Which neighbours of convolutions and pools share their kernel, and how it is cut: a table of what
// one kernel can hold, on as many threads as make it worth cutting images into tiles.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/build/canonical.h"
#include "core/graph/build/text.h"
#include "core/plan/planner.h"
#include "tests/support/whole_program.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

struct PlanCase {
  const char* name;
  const char* nodes;   // from %3 on: %0 is the image, %1 and %2 are 3x3 weights
  const char* tiling;  // a part of how the one kernel is cut
};

constexpr const char* kPool = "{kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]}";
constexpr const char* kConv = "{pads=[1, 1, 1, 1]}";

constexpr PlanCase kPlanCases[] = {
    {"relu_conv", R"(
  %3 = Relu(%0) : f32[1,32,56,56]  "" @ "relu"
  %4 = Conv(%3, %1) CONV : f32[1,32,56,56]  "" @ "conv"
  output %4)",
     "halo d21:"},
    {"chain_conv", R"(
  %3 = Exp(%0) : f32[1,32,56,56]  "" @ "exp"
  %4 = Tanh(%3) : f32[1,32,56,56]  "" @ "tanh"
  %5 = Sigmoid(%4) : f32[1,32,56,56]  "" @ "sigmoid"
  %6 = Conv(%5, %1) CONV : f32[1,32,56,56]  "" @ "conv"
  output %6)",
     "halo d21:"},
    {"scale_shift_conv", R"(
  %3 = const "" : f32[] {0x1p-1}
  %4 = Mul(%0, %3) : f32[1,32,56,56]  "" @ "scale"
  %5 = Add(%4, %3) : f32[1,32,56,56]  "" @ "shift"
  %6 = Conv(%5, %1) CONV : f32[1,32,56,56]  "" @ "conv"
  output %6)",
     "halo d21:"},
    {"pad_conv", R"(
  %3 = Pad(%0) {pads=[0, 0, 1, 1, 0, 0, 1, 1]} : f32[1,32,58,58]  "" @ "pad"
  %4 = Conv(%3, %1) : f32[1,32,56,56]  "" @ "conv"
  output %4)",
     "halo d2:"},
    {"conv_relu_pool", R"(
  %3 = Conv(%0, %1) CONV : f32[1,32,56,56]  "" @ "conv"
  %4 = Relu(%3) : f32[1,32,56,56]  "" @ "relu"
  %5 = MaxPool(%4) POOL : f32[1,32,28,28]  "" @ "pool"
  output %5)",
     "halo oh:"},
    {"pool_conv", R"(
  %3 = MaxPool(%0) POOL : f32[1,32,28,28]  "" @ "pool"
  %4 = Conv(%3, %1) CONV : f32[1,32,28,28]  "" @ "conv"
  output %4)",
     "halo oh:"},
    {"conv_relu_conv", R"(
  %3 = Conv(%0, %1) CONV : f32[1,32,56,56]  "" @ "first"
  %4 = Relu(%3) : f32[1,32,56,56]  "" @ "relu"
  %5 = Conv(%4, %2) CONV : f32[1,32,56,56]  "" @ "second"
  output %5)",
     "halo oh:"},
    {"sigmoid_average_pool", R"(
  %3 = Sigmoid(%0) : f32[1,32,56,56]  "" @ "sigmoid"
  %4 = AveragePool(%3) POOL : f32[1,32,28,28]  "" @ "pool"
  output %4)",
     "c:"},
    {"relu_max_pool", R"(
  %3 = Relu(%0) : f32[1,32,56,56]  "" @ "relu"
  %4 = MaxPool(%3) POOL : f32[1,32,28,28]  "" @ "pool"
  output %4)",
     "c:"},
};

std::string Replaced(std::string text, std::string_view word, std::string_view by) {
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at)) {
    text.replace(at, word.size(), by);
  }
  return text;
}

PlannedModel PlanOf(std::string_view nodes, const DeviceSpec& device, PlanOptions options = {},
                    bool deep = false) {
  std::string text = Replaced(std::string(nodes), "CONV", kConv);
  text = StrCat("graph \"g\" {\n  %0 = input \"x\" : f32[1,32,56,56]\n  %1 = weight \"v\" : ",
                "f32[32,32,3,3]\n  %2 = weight \"w\" : f32[32,32,3,3]",
                Replaced(std::move(text), "POOL", kPool), "\n}\n");
  if (deep) {  // fewer pixels, more channels
    text = Replaced(Replaced(std::move(text), "32,56,56", "64,14,14"), "32,32,", "64,64,");
  }
  auto graph = ParseGraph(text);
  FUSION_CHECK(graph.ok(), Message(graph.status()));
  auto canonical = Canonicalise(*graph);
  FUSION_CHECK(canonical.ok(), Message(canonical.status()));
  auto model = MakePlan(canonical->graph, device, options);
  FUSION_CHECK(model.ok(), Message(model.status()));
  return *std::move(model);
}

class WindowPlans : public ::testing::TestWithParam<PlanCase> {};

TEST_P(WindowPlans, AreOneKernel) {
  PlannedModel model = PlanOf(GetParam().nodes, DeviceNamed("intel-skylake-server", 4));
  ASSERT_EQ(model.plan.launches.size(), 1);
  const PlanGroup& group = model.plan.groups[static_cast<size_t>(model.plan.launches[0].group)];
  EXPECT_THAT(group.tiles, HasSubstr(GetParam().tiling));
}

INSTANTIATE_TEST_SUITE_P(All, WindowPlans, ::testing::ValuesIn(kPlanCases),
                         [](const auto& param) { return std::string(param.param.name); });

// Halos are work done twice.
TEST(WindowPlans, HaveNoHalosWhereNothingMayBeComputedAgain) {
  PlanOptions options;
  options.hints.compute_pressure = 1;
  PlannedModel model = PlanOf(kPlanCases[0].nodes, DeviceNamed("intel-skylake-server", 4), options);
  for (const PlanGroup& group : model.plan.groups) {
    EXPECT_THAT(group.tiles, ::testing::Not(HasSubstr("halo")));
  }
}

// Too large for the chip as it is: the entry says how long a tile may be.
TEST(WindowPlans, SayWhichTileWouldFit) {
  // Sums in index order: split ones would fit.
  PlannedModel model = PlanOf(kPlanCases[6].nodes, DeviceNamed("ascend_910b", 20),
                              {.numerics = Numerics::kBitwise}, /*deep=*/true);
  bool told = false;
  for (const PlanDecision& d : model.plan.decisions) {
    for (const WhatIf& what_if : d.what_ifs) {
      told =
          told || (d.code == "on-chip" && what_if.words.find("fits if a block had at most ") == 0);
    }
  }
  EXPECT_TRUE(told);
}

}  // namespace
}  // namespace fusion
