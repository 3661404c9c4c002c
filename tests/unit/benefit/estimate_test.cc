#include "core/benefit/estimate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/graph/build/text.h"
#include "core/plan/planner.h"
#include "core/schedule/ir/join.h"
#include "core/schedule/ir/phase_pipeline.h"
#include "core/schedule/tiles/candidates.h"
#include "tests/support/kernel_harness.h"

namespace fusion {
namespace {

// A machine of round numbers: 32 KiB private, then memory at 1 GB/s a thread, 1.5 GB/s together.
DeviceSpec Toy(int threads = 1) {
  DeviceSpec d;
  d.name = "toy";
  d.threads = threads;
  d.vector_bytes = 16;
  d.flops_per_s = 8e9;
  d.product_efficiency = 0.5;
  d.scalar_ops_per_s = 1e9;
  d.overlap = 0.25;
  d.launch_s = 3e-6;
  d.barrier_s = 2e-6;
  d.task_s = 1e-6;
  d.levels = {{.name = "l1", .bytes = 32 << 10, .bytes_per_s = 1e10, .total_bytes_per_s = 1e10},
              {.name = "memory", .shared = true, .bytes_per_s = 1e9, .total_bytes_per_s = 1.5e9}};
  d.blocks = {{.m = 4, .n = 8}};
  return d;
}

Estimate Of(std::string_view schedule, const DeviceSpec& device) {
  auto parsed = ParseSchedule(schedule);
  FUSION_CHECK(parsed.ok(), Message(parsed.status()));
  FUSION_CHECK(Verify(*parsed).ok(), Message(Verify(*parsed)));
  return EstimateKernel(*parsed, device);
}

// y = x + b over `rows` x 1024, in tasks of `tile` rows.
std::string AddRows(int rows, int tile) {
  return StrCat(R"(schedule "Add" {
  dims r:)",
                rows, R"( c:1024
  param p0 input f32[)",
                rows, R"(,1024] strides [1024, 1]
  param p1 weight f32[1024] strides [1]
  param p2 output f32[)",
                rows, R"(,1024] strides [1024, 1]
  phase {
    segment r:)",
                tile, R"( {
      each [r, c] {
        v0 = load p0[r, c]
        v1 = load p1[c]
        v2 = add(v0, v1)
        store p2[r, c] = v2
      }
    }
  }
}
)");
}

void ExpectSumOfTerms(const Estimate& e) {
  EXPECT_NEAR(e.time_us,
              std::max(e.compute_us, e.memory_us) + e.stall_us + e.launch_us + e.tiling_loss_us,
              1e-9 * e.time_us);
}

TEST(EstimateKernel, CountsEveryTensorOnce) {
  Estimate e = Of(AddRows(64, 16), Toy());
  EXPECT_EQ(e.activation_bytes, 2 * 64 * 1024 * 4);
  EXPECT_EQ(e.weight_bytes, 1024 * 4);
  EXPECT_EQ(e.recompute_bytes, 0);
  EXPECT_EQ(e.on_chip_bytes, 0);
  EXPECT_EQ(e.tasks, 4);
  EXPECT_EQ(e.waves, 4);
}

TEST(EstimateKernel, LaunchIsOnePhaseAndTheTasksOfOneThread) {
  EXPECT_NEAR(Of(AddRows(64, 64), Toy()).launch_us, 3 + 1, 1e-9);
  EXPECT_NEAR(Of(AddRows(64, 16), Toy()).launch_us, 3 + 4, 1e-9);
  EXPECT_NEAR(Of(AddRows(64, 16), Toy(2)).launch_us, 3 + 2, 1e-9);
  EXPECT_NEAR(Of(AddRows(64, 16), Toy(3)).launch_us, 3 + 2, 1e-9);
}

TEST(EstimateKernel, MemoryIsBytesOverTheRateOfTheThreadsAtWork) {
  double bytes = 2 * 64 * 1024 * 4;
  // Every task fetches the weight.
  EXPECT_NEAR(Of(AddRows(64, 64), Toy()).memory_us, (bytes + 4096) / 1e9 * 1e6, 1e-6);
  EXPECT_NEAR(Of(AddRows(64, 16), Toy()).memory_us, (bytes + 4 * 4096) / 1e9 * 1e6, 1e-6);
  // Two threads are held back by what all may have; one task has one thread only.
  EXPECT_NEAR(Of(AddRows(64, 16), Toy(2)).memory_us, (bytes + 4 * 4096) / 1.5e9 * 1e6, 1e-6);
  EXPECT_NEAR(Of(AddRows(64, 64), Toy(2)).memory_us, (bytes + 4096) / 1e9 * 1e6, 1e-6);
}

TEST(EstimateKernel, ComputeIsSpreadOverTheThreadsAndTheLastWaveIsLoss) {
  Estimate one = Of(AddRows(96, 32), Toy());
  EXPECT_GT(one.compute_us, 96 * 1024 / 1e9 * 1e6);  // an addition an element is the least
  EXPECT_NEAR(one.tiling_loss_us, 0, 1e-9);
  // Three equal tasks on two threads: as long as two tasks, of which the even part is one and a
  // half.
  Estimate two = Of(AddRows(96, 32), Toy(2));
  EXPECT_NEAR(two.compute_us, one.compute_us / 2, 1e-9 * one.compute_us);
  EXPECT_NEAR(two.tiling_loss_us, one.compute_us / 6, 1e-9 * one.compute_us);
  EXPECT_EQ(two.waves, 1.5);
  // One task on two threads.
  Estimate lone = Of(AddRows(96, 96), Toy(2));
  EXPECT_NEAR(lone.compute_us + lone.tiling_loss_us, one.compute_us, 1e-9 * one.compute_us);
}

TEST(EstimateKernel, TimeIsTheDocumentedSum) {
  for (int threads : {1, 2, 5}) {
    for (int tile : {1, 7, 16, 64}) {
      Estimate e = Of(AddRows(64, tile), Toy(threads));
      ExpectSumOfTerms(e);
      EXPECT_NEAR(e.stall_us, 0.75 * std::min(e.compute_us, e.memory_us), 1e-9 * e.time_us);
    }
  }
}

TEST(EstimateKernel, WorkspaceIsWrittenAndReadAgain) {
  Estimate e = Of(R"(schedule "Exp+Neg" {
  dims r:64 c:128
  param p0 input f32[64,128] strides [128, 1]
  param p1 output f32[64,128] strides [128, 1]
  workspace w0 f32[64,128] strides [128, 1]
  phase {
    segment r:64 {
      each [r, c] {
        v0 = load p0[r, c]
        v1 = exp(v0)
        store w0[r, c] = v1
      }
    }
  }
  phase {
    segment c:128 {
      each [r, c] {
        v0 = load w0[r, c]
        v1 = neg(v0)
        store p1[r, c] = v1
      }
    }
  }
}
)",
                  Toy());
  EXPECT_EQ(e.activation_bytes, (1 + 1 + 2) * 64 * 128 * 4);
  EXPECT_NEAR(e.launch_us, (3 + 1) + (2 + 1), 1e-9) << "the second phase waits for a barrier";
  ExpectSumOfTerms(e);
}

TEST(EstimateSequence, BarriersTakeThePlaceOfLaunches) {
  Estimate one = Of(AddRows(64, 16), Toy());
  Estimate two = Of(AddRows(32, 16), Toy());
  EXPECT_NEAR(EstimateSequence({one}, Toy()).time_us, one.time_us, 1e-9);
  Estimate both = EstimateSequence({one, two, one}, Toy());
  EXPECT_NEAR(SavedBySequence(3, Toy()), 2, 1e-9);
  EXPECT_NEAR(both.time_us, 2 * one.time_us + two.time_us - 2, 1e-9);
  EXPECT_NEAR(both.launch_us, 2 * one.launch_us + two.launch_us - 2, 1e-9);
  EXPECT_EQ(both.activation_bytes, 2 * one.activation_bytes + two.activation_bytes);
  EXPECT_EQ(both.tasks, 2 * one.tasks + two.tasks);
}

TEST(EstimateKernel, AnEmptyKernelCostsItsLaunchOnly) {
  Estimate e = Of(AddRows(0, 16), Toy());
  EXPECT_EQ(e.activation_bytes, 0);
  EXPECT_EQ(e.tasks, 0);
  EXPECT_NEAR(e.time_us, 3, 1e-9);
}

// ---- lowered groups ----

struct Candidate {
  Lowered lowered;
  Estimate estimate;
};

std::vector<Candidate> Candidates(std::string_view text, const DeviceSpec& device) {
  auto graph = ParseGraph(text);
  FUSION_CHECK(graph.ok(), Message(graph.status()));
  WholeProgram whole = AsOneGroup(BuildProgram(*graph).value()).value();
  std::vector<Candidate> all;
  for (const Choice& choice : EnumerateChoices(whole.group, device, {.limit = 50}, nullptr)) {
    auto lowered = Lower(whole.group, choice, device, false);
    if (!lowered.ok()) continue;
    Estimate estimate = EstimateKernel(lowered->schedule, device);
    all.push_back({*std::move(lowered), estimate});
  }
  FUSION_CHECK(!all.empty(), "a schedule");
  return all;
}

std::string MatMulAddRelu(int64_t m, int64_t n, int64_t k) {
  std::string out = StrCat("f32[", m, ",", n, "]");
  return StrCat("graph \"g\" {\n  %0 = input \"x\" : f32[", m, ",", k, "]\n",
                "  %1 = weight \"w\" : f32[", k, ",", n, "]\n  %2 = weight \"b\" : f32[", n, "]\n",
                "  %3 = MatMul(%0, %1) : ", out, "  \"\" @ \"\"\n  %4 = Add(%3, %2) : ", out,
                "  \"\" @ \"\"\n  %5 = Relu(%4) : ", out, "  \"\" @ \"\"\n  output %5\n}\n");
}

PlannedModel PlanOf(const std::string& text, FusionMode mode, const DeviceSpec& device) {
  auto graph = ParseGraph(text);
  FUSION_CHECK(graph.ok(), Message(graph.status()));
  auto model = MakePlan(*graph, device, {.fusion = mode});
  FUSION_CHECK(model.ok(), Message(model.status()));
  return *std::move(model);
}

TEST(EstimateKernel, MatMulAddReluMovesWhatTheHandCounts) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{128, 512, 256}, {13, 50, 20}, {1, 7, 3}}) {
    DeviceSpec device = DeviceNamed("generic-avx2", 2);
    for (const Candidate& c : Candidates(MatMulAddRelu(m, n, k), device)) {
      EXPECT_EQ(c.estimate.activation_bytes, 4 * (m * k + m * n)) << ToString(c.lowered.schedule);
      EXPECT_EQ(c.estimate.weight_bytes, 4 * (k * n + n));
      EXPECT_EQ(c.estimate.recompute_bytes, 0);
      EXPECT_NEAR(c.estimate.flops, 2.0 * static_cast<double>(m * n * k), 1e-6 * c.estimate.flops);
    }
    // Op by op each of the two intermediates is written once and read once.
    PlannedModel apart = PlanOf(MatMulAddRelu(m, n, k), FusionMode::kOpByOp, device);
    EXPECT_EQ(apart.plan.totals.activation_bytes, 4 * (m * k + m * n + 4 * m * n));
    EXPECT_EQ(apart.plan.totals.weight_bytes, 4 * (k * n + n));
    double flops = 0;
    for (const PlanGroup& g : apart.plan.groups) flops += g.estimate.flops;
    EXPECT_NEAR(flops, 2.0 * static_cast<double>(m * n * k), 1e-6 * flops);
  }
}

TEST(EstimateKernel, ProductsElementByElementCountToo) {
  for (const char* type : {"f16", "f64", "i64"}) {
    std::string text =
        StrCat("graph \"g\" {\n  %0 = input \"a\" : ", type, "[13,20]\n  %1 = input \"b\" : ", type,
               "[20,50]\n  %2 = MatMul(%0, %1) : ", type, "[13,50]  \"\" @ \"\"\n  output %2\n}\n");
    PlannedModel model = PlanOf(text, FusionMode::kFused, DeviceNamed("generic-avx2", 2));
    double flops = 0;
    for (const PlanGroup& g : model.plan.groups) flops += g.estimate.flops;
    EXPECT_NEAR(flops, 2.0 * 13 * 50 * 20, 1e-6 * flops) << type;
  }
}

TEST(EstimateKernel, EveryLoweredKernelTakesTheSumOfItsTerms) {
  constexpr const char* kTexts[] = {
      R"(graph "g" {
  %0 = input "x" : f32[96,4096]
  %1 = Softmax(%0) {axis=-1} : f32[96,4096]  "" @ ""
  output %1
}
)",
      R"(graph "g" {
  %0 = input "x" : f32[256,512]
  %1 = weight "w" : f32[512,1024]
  %2 = Exp(%0) : f32[256,512]  "" @ ""
  %3 = MatMul(%2, %1) : f32[256,1024]  "" @ ""
  output %3
}
)"};
  for (const char* text : kTexts) {
    for (const DeviceSpec& device : {Toy(), Toy(4), DeviceNamed("generic-avx2", 3)}) {
      for (const Candidate& c : Candidates(text, device)) ExpectSumOfTerms(c.estimate);
    }
  }
}

TEST(EstimateKernel, ScratchBeyondThePrivateCacheCostsTime) {
  DeviceSpec device = DeviceNamed("generic-avx2", 1);
  DeviceSpec tiny = device;
  for (MemoryLevel& level : tiny.levels) {
    if (!level.shared) level.bytes = 512;
  }
  for (const Candidate& c : Candidates(R"(graph "g" {
  %0 = input "x" : f32[64,1024]
  %1 = Softmax(%0) {axis=-1} : f32[64,1024]  "" @ ""
  output %1
}
)",
                                       device)) {
    Estimate spilled = EstimateKernel(c.lowered.schedule, tiny);
    ASSERT_GT(spilled.on_chip_bytes, tiny.OnChipBytes());
    EXPECT_GT(spilled.time_us, c.estimate.time_us);
    ExpectSumOfTerms(spilled);
  }
}

TEST(EstimateKernel, RecomputedInputIsReadAgainByEveryOtherColumnBlock) {
  DeviceSpec device = DeviceNamed("generic-avx2", 8);
  int recomputing = 0;
  for (const Candidate& c : Candidates(R"(graph "g" {
  %0 = input "x" : f32[256,512]
  %1 = weight "w" : f32[512,1024]
  %2 = Exp(%0) : f32[256,512]  "" @ ""
  %3 = MatMul(%2, %1) : f32[256,1024]  "" @ ""
  output %3
}
)",
                                       device)) {
    const Schedule& s = c.lowered.schedule;
    int64_t column_blocks = 1;
    for (const GridDim& g : s.phases.at(0).segments.at(0).grid) {
      if (s.dim(g.dim).name == "n") column_blocks = (1024 + g.tile - 1) / g.tile;
    }
    EXPECT_EQ(c.estimate.recompute_bytes, (column_blocks - 1) * 256 * 512 * 4) << ToString(s);
    recomputing += column_blocks > 1;
  }
  EXPECT_GT(recomputing, 0);
}

TEST(EstimateKernel, LargerShapesCostMore) {
  DeviceSpec device = DeviceNamed("generic-avx2", 2);
  auto best = [&](int64_t m, int64_t n, int64_t k) {
    std::vector<Candidate> all = Candidates(MatMulAddRelu(m, n, k), device);
    return std::min_element(all.begin(), all.end(),
                            [](const Candidate& a, const Candidate& b) {
                              return a.estimate.time_us < b.estimate.time_us;
                            })
        ->estimate;
  };
  for (int64_t m : {16, 100, 256}) {
    for (int64_t n : {32, 200, 512}) {
      for (int64_t k : {24, 256, 300}) {
        Estimate small = best(m, n, k);
        for (const Estimate& large : {best(2 * m, n, k), best(m, 2 * n, k), best(m, n, 2 * k)}) {
          EXPECT_GT(large.time_us, small.time_us) << m << " " << n << " " << k;
          EXPECT_GT(large.flops, small.flops);
          EXPECT_GE(large.activation_bytes, small.activation_bytes);
          EXPECT_GE(large.weight_bytes, small.weight_bytes);
        }
      }
    }
  }
}

// y = rows of a table that ten indices name, whose vectors run along `vector`.
Estimate Gathered(int rows, std::string_view vector) {
  const std::string_view other = vector == "c" ? "r" : "c";
  return Of(StrCat(R"(schedule "Gather" {
  dims r:10 c:64
  param p0 input i64[10] strides [1]
  param p1 input f32[)",
                   rows, R"(,64] strides [64, 1]
  param p2 output f32[10,64] strides [64, 1]
  phase {
    segment {
      each [)",
                   other, ", ", vector, R"(] {
        v0 = load p0[r]
        v1 = load p1[@in0, c]
        store p2[r, c] = v1
      }
    }
  }
}
)"),
            Toy());
}

TEST(EstimateKernel, ReadsAtIndicesCountWhatTheseCanName) {
  const Estimate few = Gathered(1000, "c");
  EXPECT_EQ(few.activation_bytes, 10 * 8 + 2 * 10 * 64 * 4);
  EXPECT_EQ(Gathered(100000, "c").activation_bytes, few.activation_bytes);
  EXPECT_EQ(Gathered(4, "c").activation_bytes, 10 * 8 + (4 + 10) * 64 * 4) << "the whole table";
  // Lanes that each look elsewhere move one by one.
  EXPECT_GT(Gathered(1000, "r").compute_us, 5 * few.compute_us);
}

// y[i, c] = sum of the 400 rows u[j] with index[j] == i.
Estimate Scattered(int places) {
  return Of(StrCat(R"(schedule "Scatter" {
  dims i:)",
                   places, R"( c:64 j:400
  param p0 input i64[400] strides [1]
  param p1 input f32[400,64] strides [64, 1]
  param p2 output f32[)",
                   places, R"(,64] strides [64, 1]
  phase {
    segment {
      alloc t0 staged f32[i, c]
      init t0 = sum
      each [i, j, c] at i = v0 {
        v0 = load p0[j]
        v1 = load p1[j, c]
        reduce sum t0[i, c] = v1
      }
      each [i, c] {
        v0 = load t0[i, c]
        store p2[i, c] = v0
      }
    }
  }
}
)"),
            Toy());
}

TEST(EstimateKernel, PlacesThatAreReadAreNotWalked) {
  const double few = Scattered(10).compute_us;
  EXPECT_LT(Scattered(20).compute_us, 1.1 * few);
  // A step for each update and one for each place, in additions at 1e9 a second.
  EXPECT_LT(few, 400 * 64 * 6 / 1e3);
  EXPECT_GT(few, 400 * 64 / 1e3);
}

TEST(Estimate, PairsHaveTheirRateWhereDenormalsMayBeFlushed) {
  auto program = ParseProgram(R"(program {
  %0 = input 0 : bf16[256,256]
  %1 = input 1 : bf16[256,256]
  %2 = Custom @0 : f32[256,256] = for m:256 n:256 k:256 [m, n] = sum(%0[m, k], %1[k, n]) : mul(cast.f32(in0), cast.f32(in1))
  output %2
}
)");
  ASSERT_TRUE(program.ok()) << program.status();
  WholeProgram whole = AsOneGroup(*program).value();
  const DeviceSpec device = DeviceNamed("generic-avx512-bf16");
  std::vector<double> compute_us;
  for (bool flushes : {false, true}) {
    whole.group.flushes = flushes;
    const Choice choice = EnumerateChoices(whole.group, device, {.limit = 1}, nullptr).at(0);
    auto lowered = Lower(whole.group, choice, device, false);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    compute_us.push_back(EstimateKernel(lowered->schedule, device).compute_us);
  }
  EXPECT_LT(compute_us[1], compute_us[0]);
}

TEST(Estimate, APipelineDoesTheSameWorkWithoutABarrierAndNearer) {
  DeviceSpec device = Toy(2);
  device.levels.insert(device.levels.begin() + 1, {.name = "l2",
                                                   .bytes = 1 << 20,
                                                   .shared = true,
                                                   .bytes_per_s = 2e9,
                                                   .total_bytes_per_s = 3e9});
  Schedule add = ParseSchedule(AddRows(64, 4)).value();
  Schedule apart = PutInPhases({&add, &add}, {{0, 1, 2}, {2, 1, 3}}, {3}).value().schedule;
  std::vector<PipelineSlice> slices = FindSlices(apart, 0, 2).value();
  Schedule together = RunAsPipeline(apart, {.first = 0, .phases = 2, .slices = slices});
  Estimate a = EstimateKernel(apart, device);
  Estimate b = EstimateKernel(together, device);
  EXPECT_NEAR(b.compute_us, a.compute_us, 1e-9);
  EXPECT_NEAR(a.launch_us, 3 + 2 + 2 * 8 * 1, 1e-9);
  EXPECT_NEAR(b.launch_us, 3 + 8 * 1, 1e-9) << "16 slices, two units";
  EXPECT_EQ(b.activation_bytes, a.activation_bytes) << "what is written counts wherever it lies";
  EXPECT_EQ(b.weight_bytes, a.weight_bytes);
  // 1 MiB of activations, of which half a MiB has room in the cache and half does not leave it.
  EXPECT_NEAR(a.off_chip_us, (512 << 10) / 1.5e9 * 1e6, 1e-6);
  EXPECT_EQ(b.off_chip_us, 0);
  // Longer slices than there are units for.
  slices[0].tile = 32;
  Estimate two =
      EstimateKernel(RunAsPipeline(apart, {.first = 0, .phases = 2, .slices = slices}), device);
  EXPECT_NEAR(two.compute_us, a.compute_us, 1e-9);
  EXPECT_NEAR(two.launch_us, 3 + 1, 1e-9);
  slices[0].tile = 40;
  EXPECT_GT(
      EstimateKernel(RunAsPipeline(apart, {.first = 0, .phases = 2, .slices = slices}), device)
          .tiling_loss_us,
      a.compute_us * 0.2);
}

}  // namespace
}  // namespace fusion
