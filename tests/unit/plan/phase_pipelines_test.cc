// Which phases of a launch are worth a pipeline.
#include "core/plan/cost/phase_pipelines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/benefit/estimate.h"
#include "core/schedule/ir/join.h"
#include "tests/support/kernel_harness.h"
#include "tests/support/schedule_text.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Two units and no cache that holds a slice: all that a pipeline gains are barriers.
DeviceSpec WithoutCaches() {
  DeviceSpec device = DeviceNamed("generic-avx2", 2);
  device.levels.erase(device.levels.begin() + 1, device.levels.end() - 1);
  device.task_s = 0;
  return device;
}

// Phases that each add a row to 6400 x 1024, 64 rows a task.
Schedule RowsInPhases(int phases) {
  Schedule add = ScheduleOf(R"(schedule "Add" {
  dims r:6400 c:1024
  param p0 input f32[6400,1024] strides [1024, 1]
  param p1 weight f32[1024] strides [1]
  param p2 output f32[6400,1024] strides [1024, 1]
  phase {
    segment r:64 {
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
  std::vector<const Schedule*> parts;
  std::vector<std::vector<int>> tensors;
  for (int i = 0; i < phases; ++i) {
    parts.push_back(&add);
    tensors.push_back({i == 0 ? 0 : i + 1, 1, i + 2});
  }
  return PutInPhases(parts, tensors, {phases + 1}).value().schedule;
}

// The pipelines of a launch whose barriers take `part` of its time.
Pipelined FormedOf(const Schedule& apart, double part) {
  DeviceSpec device = WithoutCaches();
  device.barrier_s = 0;
  const double us = EstimateKernel(apart, device).time_us;
  const auto barriers = static_cast<double>(apart.phases.size() - 1);
  device.barrier_s = 1e-6 * us * part / (1 - part) / barriers;
  return FormPipelines(apart, EstimateKernel(apart, device), device);
}

TEST(FormPipelines, NotWhereLittleIsGained) {
  const Schedule apart = RowsInPhases(2);
  Pipelined little = FormedOf(apart, 0.04);
  EXPECT_THAT(little.pipelines, IsEmpty());
  ASSERT_THAT(little.waits, SizeIs(1));
  EXPECT_EQ(little.waits[0].code, RefusalCode::kPipeline);
  EXPECT_THAT(little.waits[0].words, HasSubstr("; a gain below 5 % is not worth it"));
  Pipelined more = FormedOf(apart, 0.06);
  ASSERT_THAT(more.pipelines, SizeIs(1));
  EXPECT_EQ(more.pipelines[0].phases, 2);
  EXPECT_TRUE(more.waits[0].empty());
}

// Each two of them would gain less than enough.
TEST(FormPipelines, CountWhatAllPhasesGain) {
  Pipelined three = FormedOf(RowsInPhases(3), 0.06);
  ASSERT_THAT(three.pipelines, SizeIs(1));
  EXPECT_EQ(three.pipelines[0].phases, 3);
  EXPECT_TRUE(three.waits[0].empty());
  EXPECT_TRUE(three.waits[1].empty());
  // One that is long enough grows by what gains less by itself.
  EXPECT_EQ(FormedOf(RowsInPhases(6), 0.07).pipelines[0].phases, 6);
}

TEST(FormPipelines, NothingIsGainedWithoutBarriers) {
  Pipelined none = FormedOf(RowsInPhases(3), 0);
  EXPECT_THAT(none.pipelines, IsEmpty());
  for (const Refusal& wait : none.waits) {
    EXPECT_THAT(wait.words, HasSubstr(", with a barrier "));
    EXPECT_THAT(wait.words, Not(HasSubstr("not worth it")));
  }
}

}  // namespace
}  // namespace fusion
