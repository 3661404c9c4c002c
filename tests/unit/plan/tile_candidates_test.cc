#include "core/plan/cost/tile_candidates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/graph/build/builder.h"
#include "core/graph/build/text.h"
#include "core/plan/cost/pin.h"
#include "core/plan/planner.h"
#include "tests/support/whole_program.h"

namespace fusion {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

// Two equal layers.
Graph Layers() {
  return ParseGraph(R"(graph "g" {
  %0 = input "x" : f32[256,128]
  %1 = weight "a" : f32[128,128]
  %2 = weight "b" : f32[128,128]
  %3 = MatMul(%0, %1) : f32[256,128]  "" @ ""
  %4 = Relu(%3) : f32[256,128]  "" @ ""
  %5 = MatMul(%4, %2) : f32[256,128]  "" @ ""
  %6 = Relu(%5) : f32[256,128]  "" @ ""
  output %6
}
)")
      .value();
}

TEST(TileChoices, HoldEveryKernelOnceAndOtherWaysToCutIt) {
  const DeviceSpec device = DeviceNamed("generic-avx2", 2);
  const PlanOptions options{.fusion = FusionMode::kOpByOp};
  const PlannedModel model = MakePlan(Layers(), device, options).value();
  TileChoices choices(model, device, options, nullptr);
  ASSERT_THAT(choices.kernels(), Not(IsEmpty()));
  std::set<int> kernels;
  double before = 1e300;
  for (const TunableKernel& kernel : choices.kernels()) {
    EXPECT_LE(kernel.run_us, before) << "most time first";
    before = kernel.run_us;
    const PlanGroup& group = model.plan.groups[static_cast<size_t>(kernel.group)];
    EXPECT_TRUE(kernels.insert(group.kernel).second) << "equal layers are one kernel";
    EXPECT_NE(group.kind, GroupKind::kPrepare);
    const auto others = choices.Others(kernel, 5).value();
    EXPECT_LE(others.size(), 5u);
    std::set<std::string> texts = {model.kernels[static_cast<size_t>(group.kernel)].text};
    for (const TileCandidate& other : others) {
      EXPECT_TRUE(texts.insert(other.kernel.text).second) << other.tiles;
      EXPECT_LE(other.estimate.time_us, kMostTimes * group.estimate.time_us);
    }
  }
  EXPECT_THAT(choices.Others(choices.kernels()[0], 5).value(), Not(IsEmpty()));
  EXPECT_THAT(model.plan.launches, SizeIs(4));
  EXPECT_THAT(choices.kernels(), SizeIs(2));
  EXPECT_EQ(choices.left_out(), "");
}

TEST(TileChoices, AreTheSameEveryTime) {
  const DeviceSpec device = DeviceNamed("generic-avx512", 2);
  const PlanOptions options;
  const PlannedModel model = MakePlan(Layers(), device, options).value();
  std::vector<std::string> tiles[2];
  for (std::vector<std::string>& of_run : tiles) {
    TileChoices choices(model, device, options, nullptr);
    for (const TunableKernel& kernel : choices.kernels()) {
      const std::vector<TileCandidate> others = choices.Others(kernel, 15).value();
      for (const TileCandidate& other : others) {
        of_run.push_back(StrCat(other.tiles, other.kernel.text));
      }
    }
  }
  EXPECT_THAT(tiles[0], Not(IsEmpty()));
  EXPECT_EQ(tiles[0], tiles[1]);
}

TEST(TileChoices, APlanIsCutAsWasMeasured) {
  const DeviceSpec device = DeviceNamed("generic-avx2", 2);
  const PlanOptions options;
  const PlannedModel model = MakePlan(Layers(), device, options).value();
  TileChoices choices(model, device, options, nullptr);
  TileSearch search{.level = 1, .state = TileSearchState::kDone};
  for (const TunableKernel& kernel : choices.kernels()) {
    const auto others = choices.Others(kernel, 1).value();
    if (others.empty()) continue;
    TunedKernel tuned{.ops = kernel.ops, .chosen = 1};
    tuned.tried = {{.choice = kernel.pick, .tiles = "the model's"},
                   {.choice = others[0].choice, .tiles = others[0].tiles}};
    search.kernels.push_back(tuned);
    const PlannedModel searched = MakePlan(Layers(), device, {}, nullptr, {}, {}, &search).value();
    const int group = searched.plan.search.kernels.back().group;
    ASSERT_GE(group, 0);
    EXPECT_EQ(searched.groups[static_cast<size_t>(group)], kernel.ops);
    const int at = searched.plan.groups[static_cast<size_t>(group)].kernel;
    EXPECT_EQ(searched.kernels[static_cast<size_t>(at)].text, others[0].kernel.text)
        << "what was measured is what runs";
    // And a lock of it is followed as any other.
    PlanOptions locked;
    locked.lock = std::make_shared<const PlanLock>(DecisionsOf(searched));
    EXPECT_EQ(MakePlan(Layers(), device, locked)->kernels[static_cast<size_t>(at)].text,
              others[0].kernel.text);
  }
  ASSERT_FALSE(search.kernels.empty());
  // Of groups that there are no longer nothing is said.
  TileSearch gone = search;
  gone.kernels[0].ops = {0};
  const size_t kernels =
      MakePlan(Layers(), device, {}, nullptr, {}, {}, &gone)->plan.search.kernels.size();
  EXPECT_EQ(kernels, search.kernels.size() - 1);
}

TEST(TileChoices, ACutThatDoesNotFitLeavesTheOthers) {
  const DeviceSpec device = DeviceNamed("generic-avx2", 2);
  const PlanOptions options{.fusion = FusionMode::kOpByOp};
  const Graph graph = ParseGraph(R"(graph "g" {
  %0 = input "x" : f32[256,128]
  %1 = weight "a" : f32[128,96]
  %2 = weight "b" : f32[96,64]
  %3 = MatMul(%0, %1) : f32[256,96]  "" @ ""
  %4 = MatMul(%3, %2) : f32[256,64]  "" @ ""
  output %4
}
)")
                          .value();
  const PlannedModel model = MakePlan(graph, device, options).value();
  TileChoices choices(model, device, options, nullptr);
  TileSearch search{.level = 1, .state = TileSearchState::kDone};
  for (const TunableKernel& kernel : choices.kernels()) {
    const auto others = choices.Others(kernel, 1).value();
    if (others.empty()) continue;
    TunedKernel tuned{.ops = kernel.ops, .chosen = 1};
    tuned.tried = {{.choice = kernel.pick, .tiles = "the model's"},
                   {.choice = others[0].choice, .tiles = others[0].tiles}};
    search.kernels.push_back(tuned);
    ++search.changed;
  }
  ASSERT_GT(search.changed, 1);
  search.kernels[0].tried[1].choice.parts[0].grid = {{"nowhere", 3}};
  const PlannedModel searched = MakePlan(graph, device, options, nullptr, {}, {}, &search).value();
  const TileSearch& kept = searched.plan.search;
  EXPECT_EQ(kept.changed, search.changed - 1);
  EXPECT_EQ(kept.kernels[0].chosen, 0);
  EXPECT_THAT(kept.kernels[0].reason, HasSubstr("no dim \"nowhere\""));
  for (size_t i = 1; i < kept.kernels.size(); ++i) EXPECT_EQ(kept.kernels[i].chosen, 1);
}

TEST(TileChoices, HighMemoryPressureTriesNothingThatHoldsMore) {
  const DeviceSpec device = DeviceNamed("generic-avx512", 2);
  PlanOptions options;
  options.hints.memory_pressure = 0.9;
  const PlannedModel model = MakePlan(Layers(), device, options).value();
  GroupEvaluator evaluator(model.program, device, options, nullptr);
  // How many of all candidates hold more than the pick for a run.
  auto dearer = [&](const PlanOptions& with) {
    TileChoices choices(model, device, with, nullptr);
    int count = 0;
    for (const TunableKernel& kernel : choices.kernels()) {
      const int64_t own = evaluator.Try(kernel.ops, kernel.pick)->verdict.run_bytes;
      const std::vector<TileCandidate> others = choices.Others(kernel, 15).value();
      EXPECT_THAT(others, Not(IsEmpty()));
      for (const TileCandidate& other : others) {
        const TriedChoice tried = evaluator.Try(kernel.ops, other.choice).value();
        count += tried.verdict.run_bytes > own ? 1 : 0;
      }
    }
    return count;
  };
  EXPECT_EQ(dearer(options), 0);
  EXPECT_GT(dearer({}), 0) << "there are some";
}

TEST(TileChoices, LaunchesOfSeveralPhasesAreLeftOut) {
  GraphBuilder b;
  TensorId at = b.AddInput("x", {DType::kF32, Shape{1, 512}});
  for (int i = 0; i < 4; ++i) {
    TensorId w = b.AddWeight(StrCat("w", i), {DType::kF32, Shape{512, 512}});
    at = b.AddNode("Relu", {b.AddNode("MatMul", {at, w}).value()}).value();
  }
  b.MarkOutput(at);
  const Graph graph = b.Build().value();
  const DeviceSpec device = DeviceNamed("intel-skylake-server", 2);
  PlanOptions options;
  const PlannedModel apart = MakePlan(graph, device, options).value();
  EXPECT_THAT(TileChoices(apart, device, options, nullptr).kernels(), Not(IsEmpty()));
  options.hints.low_latency = true;
  const PlannedModel joined = MakePlan(graph, device, options).value();
  ASSERT_THAT(joined.plan.launches, SizeIs(1)) << "one launch for all layers";
  const TileChoices choices(joined, device, options, nullptr);
  EXPECT_THAT(choices.kernels(), IsEmpty());
  EXPECT_EQ(choices.left_out(), "1 kernel in a launch of several phases");
}

}  // namespace
}  // namespace fusion
