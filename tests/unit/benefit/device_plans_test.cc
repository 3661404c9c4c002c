// Plans for devices of other kinds, from their specs alone: no code is generated for them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/benefit/estimate.h"
#include "core/graph/build/canonical.h"
#include "core/graph/build/text.h"
#include "core/import/import.h"
#include "core/plan/planner.h"
#include "core/schedule/tiles/legality.h"
#include "tests/models/models.h"
#include "tests/support/whole_program.h"

namespace fusion {
namespace {

using testing::HasSubstr;

constexpr const char* kAccelerators[] = {"a100", "ascend_910", "ascend_910b", "h100", "h200"};

DeviceSpec Device(std::string_view name) { return DeviceNamed(name, /*threads=*/0); }

Graph Model(std::string_view name) {
  auto generated = GenerateModel(name);
  FUSION_CHECK(generated.ok(), Message(generated.status()));
  auto graph = ImportOnnx(generated->model);
  FUSION_CHECK(graph.ok(), Message(graph.status()));
  return Canonicalise(*graph)->graph;
}

Graph Parse(std::string_view text) {
  auto graph = ParseGraph(text);
  FUSION_CHECK(graph.ok(), Message(graph.status()));
  return *std::move(graph);
}

PlannedModel PlanFor(const Graph& graph, const DeviceSpec& device,
                     FusionMode fusion = FusionMode::kFused) {
  auto model = MakePlan(graph, device, {.fusion = fusion});
  FUSION_CHECK(model.ok(), Message(model.status()));
  return *std::move(model);
}

// How the kernels that run at every inference are cut, in order.
std::vector<std::string> Tiles(const PlannedModel& model) {
  std::vector<std::string> tiles;
  for (const PlanLaunch& launch : model.plan.launches) {
    tiles.push_back(model.plan.groups[static_cast<size_t>(launch.group)].tiles);
  }
  return tiles;
}

class PlanOnDevice : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(PlanOnDevice, EveryKernelHasItsPlaceOnChip) {
  auto [device_name, model_name] = GetParam();
  DeviceSpec device = Device(device_name);
  PlannedModel model = PlanFor(Model(model_name), device);
  EXPECT_TRUE(model.plan.fallbacks.empty());
  EXPECT_EQ(model.plan.target, device_name);
  EXPECT_EQ(model.plan.isa, device.arch);
  EXPECT_EQ(model.plan.threads, device.threads);
  EXPECT_LT(model.plan.totals.launches, model.plan.op_by_op.launches);
  EXPECT_LT(model.plan.totals.estimated_us, model.plan.op_by_op.estimated_us);
  for (const PlannedKernel& kernel : model.kernels) {
    SCOPED_TRACE(kernel.text);
    EXPECT_TRUE(Verify(kernel.schedule).ok()) << Verify(kernel.schedule);
    if (kernel.schedule.label == "Pack") continue;
    OnChipNeed need = NeedOnChip(kernel.schedule, device);
    EXPECT_EQ(Misfit(need, device), "");
    for (const auto& [level, bytes] : need.ByLevel(device)) {
      EXPECT_LE(bytes, device.level(level).UsableBytes()) << level;
    }
  }
  for (const PlanGroup& group : model.plan.groups) {
    if (group.label == "Pack") continue;
    const Estimate& e = group.estimate;
    EXPECT_LE(e.on_chip_bytes, device.OnChipBytes()) << group.label;
    EXPECT_NEAR(e.time_us,
                std::max(e.compute_us, e.memory_us) + e.stall_us + e.launch_us + e.tiling_loss_us,
                1e-9 * e.time_us);
    EXPECT_LE(e.product_us, e.compute_us * (1 + 1e-9));
    EXPECT_LE(e.off_chip_us, e.memory_us * (1 + 1e-9));
    EXPECT_FALSE(group.bound.empty()) << group.label;
    EXPECT_FALSE(group.tiles.empty()) << group.label;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, PlanOnDevice,
                         testing::Combine(testing::ValuesIn(std::vector<std::string>(
                                              std::begin(kAccelerators), std::end(kAccelerators))),
                                          testing::Values("bert_layer", "mha", "swiglu",
                                                          "layernorm", "conv_bias_leakyrelu")),
                         [](const auto& param) {
                           return StrCat(std::get<0>(param.param), "_", std::get<1>(param.param));
                         });

TEST(DevicePlans, PlanningIsDeterministic) {
  Graph graph = Model("mha");
  for (const char* name : kAccelerators) {
    PlannedModel a = PlanFor(graph, Device(name));
    PlannedModel b = PlanFor(graph, Device(name));
    ASSERT_EQ(a.kernels.size(), b.kernels.size());
    for (size_t k = 0; k < a.kernels.size(); ++k) EXPECT_EQ(a.kernels[k].text, b.kernels[k].text);
  }
}

TEST(DevicePlans, DevicesGetPlansOfTheirOwn) {
  Graph graph = Model("bert_layer");
  std::set<std::vector<std::string>> tiles;
  std::set<double> microseconds;
  for (const char* name : kAccelerators) {
    PlannedModel model = PlanFor(graph, Device(name));
    tiles.insert(Tiles(model));
    microseconds.insert(model.plan.totals.estimated_us);
  }
  EXPECT_GE(tiles.size(), 3U);
  EXPECT_GE(microseconds.size(), 4U);  // what h100 and h200 differ in is not touched here
}

TEST(DevicePlans, MoreBandwidthIsNoSlower) {
  // h100 and h200 differ in their memory only.
  for (const char* model : {"bert_layer", "elementwise", "mha"}) {
    Graph graph = Model(model);
    EXPECT_GE(PlanFor(graph, Device("h100")).plan.totals.estimated_us,
              PlanFor(graph, Device("h200")).plan.totals.estimated_us)
        << model;
  }
}

// A row of 50,000 numbers is 195 KiB: it fits the 227 KiB of one device, not the 163 KiB of
// another.
constexpr const char* kLongRows = R"(graph "rows" {
  %0 = input "x" : f32[264,50000]
  %1 = Softmax(%0) {axis=-1} : f32[264,50000]  "" @ ""
  output %1
}
)";

TEST(DevicePlans, WhatHasNoPlaceIsSplit) {
  Graph graph = Parse(kLongRows);
  PlannedModel fits = PlanFor(graph, Device("h200"));
  EXPECT_EQ(fits.plan.totals.launches, 1);
  EXPECT_GT(fits.plan.groups[0].estimate.on_chip_bytes, Device("a100").OnChipBytes());
  for (const char* name : {"a100", "ascend_910b"}) {
    DeviceSpec device = Device(name);
    ASSERT_LT(device.OnChipBytes(), 4 * 50000);
    PlannedModel split = PlanFor(graph, device);
    EXPECT_GT(split.plan.totals.launches, 1) << name;
    std::string refusals;
    for (const PlanDecision& d : split.plan.decisions) refusals += d.reason + "\n";
    EXPECT_THAT(refusals, HasSubstr(StrCat(" B, ", device.staged_level, " has ",
                                           device.OnChipBytes(), " B")));
  }
}

TEST(DevicePlans, MemoryThatGrowsTakesWhatHadNoPlace) {
  DeviceSpec device = Device("a100");
  for (MemoryLevel& level : device.levels) {
    if (level.name == device.staged_level) level.bytes = 262144;
  }
  EXPECT_EQ(PlanFor(Parse(kLongRows), device).plan.totals.launches, 1);
}

// ---- terms of the estimate ----

constexpr const char* kProjection = R"(graph "projection" {
  %0 = input "x" : f32[2048,1024]
  %1 = weight "w" : f32[1024,4096]
  %2 = MatMul(%0, %1) : f32[2048,4096]  "" @ ""
  %3 = Tanh(%2) : f32[2048,4096]  "" @ ""
  output %3
}
)";

Estimate OnlyKernel(const PlannedModel& model) {
  FUSION_CHECK(model.plan.launches.size() == 1, "one kernel");
  return model.plan.groups[static_cast<size_t>(model.plan.launches[0].group)].estimate;
}

TEST(DevicePlans, ResultsPayTheirWayBetweenUnitsThatShareNoMemory) {
  DeviceSpec apart = Device("ascend_910b");
  DeviceSpec together = apart;
  together.exchange_level = "";
  together.exchange_s = 0;
  PlannedModel model = PlanFor(Parse(kProjection), together);
  const Schedule& schedule = model.kernels.back().schedule;
  ASSERT_EQ(schedule.label, "MatMul+Tanh");
  Estimate there = EstimateKernel(schedule, apart);
  Estimate here = EstimateKernel(schedule, together);
  // Every result is written to the level between and read back once.
  double bytes = 2.0 * 4 * 2048 * 4096;
  double us = bytes / apart.level(apart.exchange_level).total_bytes_per_s * 1e6;
  EXPECT_NEAR(there.memory_us - here.memory_us, us, 0.01 * us);
  EXPECT_GT(there.launch_us, here.launch_us);
  EXPECT_NEAR(there.compute_us, here.compute_us, 1e-9 * here.compute_us);
}

TEST(DevicePlans, ClippedResultsLeaveOnTheirWayOut) {
  DeviceSpec apart = Device("ascend_910b");
  DeviceSpec together = apart;
  together.exchange_level = "";
  std::string text = kProjection;
  text.replace(text.find("Tanh"), 4, "Relu");
  PlannedModel model = PlanFor(Parse(text), apart);
  const Schedule& schedule = model.kernels.back().schedule;
  ASSERT_EQ(schedule.label, "MatMul+Relu");
  EXPECT_EQ(EstimateKernel(schedule, apart).memory_us,
            EstimateKernel(schedule, together).memory_us);
}

TEST(DevicePlans, ALastWaveOfAFewBlocksIsALoss) {
  DeviceSpec device = Device("h100");
  PlannedModel model = PlanFor(Parse(kProjection), device);
  Estimate e = OnlyKernel(model);
  EXPECT_NEAR(e.waves, static_cast<double>(e.tasks) / 132, 1e-9);
  // All blocks are equal: whole waves take as long as the last one, too.
  double expected = e.compute_us * (std::ceil(e.waves) / e.waves - 1);
  EXPECT_NEAR(e.tiling_loss_us, expected, 0.02 * e.compute_us);
  // Half the units: the same work takes twice as long.
  DeviceSpec half = device;
  half.threads = 66;
  Estimate slower = EstimateKernel(model.kernels.back().schedule, half);
  EXPECT_NEAR(slower.compute_us, 2 * e.compute_us, 1e-9 * e.compute_us);
}

TEST(DevicePlans, OperandsAreFetchedForEveryBlockOfAccumulators) {
  // One block of the schedule needs [64, 1024] x [1024, 256]: two products of 64 x 128.
  constexpr const char* kTwice = R"(schedule "MatMul" {
  dims m:64 n:256 k:1024
  param p0 input f32[64,1024] strides [1024, 1]
  param p1 input f32[1024,256] strides [256, 1]
  param p2 output f32[64,256] strides [256, 1]
  phase {
    segment {
      loop n:128 {
        alloc t0 acc f32[m, n]
        mma t0[m, n] = p0[m, k] * p1[k, n] rows m columns n over [k]
        each [m, n] {
          v0 = load t0[m, n]
          store p2[m, n] = v0
        }
      }
    }
  }
}
)";
  auto schedule = ParseSchedule(kTwice);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  DeviceSpec device = Device("h100");
  OnChipNeed need = NeedOnChip(*schedule, device);
  EXPECT_EQ(need.accumulators, 4 * 64 * 128);
  EXPECT_EQ(need.operands, 4 * (64 + 128) * device.operand_slice * device.operand_stages);
  EXPECT_EQ(need.staged, 0);
  double bytes = 4.0 * (2 * 64 * 1024 + 1024 * 256 + 64 * 256);
  Estimate e = EstimateKernel(*schedule, device);
  EXPECT_NEAR(e.memory_us, bytes / device.level("l2").bytes_per_s * 1e6, 1e-6);
  EXPECT_EQ(e.activation_bytes, 4 * (64 * 1024 + 1024 * 256 + 64 * 256));
}

TEST(DevicePlans, TheBoundIsTheLargestTerm) {
  DeviceSpec device = Device("h100");
  EXPECT_EQ(BoundOf({.compute_us = 5, .product_us = 4, .memory_us = 2}, device), "products");
  EXPECT_EQ(BoundOf({.compute_us = 5, .product_us = 1, .memory_us = 2}, device), "elements");
  EXPECT_EQ(BoundOf({.compute_us = 1, .memory_us = 5, .off_chip_us = 1}, device), "l2");
  EXPECT_EQ(BoundOf({.compute_us = 1, .memory_us = 5, .off_chip_us = 4}, device), "memory");
  EXPECT_EQ(BoundOf({.compute_us = 1, .launch_us = 3}, device), "launch");
  EXPECT_EQ(BoundOf({.compute_us = 1, .launch_us = 3, .tiling_loss_us = 4}, device), "idle units");
  EXPECT_EQ(BoundOf({}, device), "");
}

TEST(DevicePlans, AMisfitSaysWhatAndWhere) {
  DeviceSpec device = Device("h100");
  EXPECT_EQ(Misfit({.staged = 1000, .operands = 2000}, device), "");
  EXPECT_EQ(Misfit({.staged = 200000, .operands = 50000}, device),
            "on-chip: the tiles of a block take 250000 B, shared has 232448 B");
  EXPECT_EQ(Misfit({.accumulators = 1 << 20}, device),
            "on-chip: the tiles of a block take 1048576 B, registers has 131072 B");
  // Caches hold what does not fit, slowly.
  EXPECT_EQ(Misfit({.staged = 1 << 30}, DeviceNamed("generic-avx2")), "");
}

}  // namespace
}  // namespace fusion
