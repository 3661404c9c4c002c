#include "core/schedule/ir/join.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/schedule/lower/interpret.h"
#include "core/schedule/memory/scratch.h"
#include "tests/support/schedule_text.h"

namespace fusion {
namespace {

using ::testing::Eq;
using ::testing::HasSubstr;

// y[i] = function(x[i]), in blocks of four.
Schedule Map(const std::string& function, int64_t extent) {
  return ScheduleOf(StrCat("schedule \"", function, "\" {\n  dims i:", extent,
                           "\n  param p0 input f32[", extent,
                           "] strides [1]\n  param p1 output f32[", extent, "] strides [1]\n",
                           R"(  phase {
    segment i:4 {
      each [i] {
        v0 = load p0[i]
        v1 = )",
                           function, R"((v0)
        store p1[i] = v1
      }
    }
  }
}
)"));
}

TEST(PutSideBySide, SegmentsOfOnePhaseThatReadOneInputOnce) {
  Schedule one = Map("neg", 8);
  Schedule two = Map("abs", 8);
  auto joined = PutSideBySide({&one, &two}, {{5, 6}, {5, 7}});
  ASSERT_TRUE(joined.ok()) << joined.status();
  const Schedule& s = joined->schedule;
  EXPECT_TRUE(Verify(s).ok()) << Verify(s) << ToString(s);
  EXPECT_EQ(s.params, 3);
  EXPECT_EQ(s.phases.size(), 1u);
  EXPECT_EQ(s.phases[0].segments.size(), 2u);
  EXPECT_EQ(s.Tasks(0), 4);
  EXPECT_EQ(joined->source, (std::vector<std::pair<int, BufferId>>{{0, 0}, {0, 1}, {1, 1}}));
  auto again = ParseSchedule(ToString(s));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(ToString(*again), ToString(s));
}

TEST(PutSideBySide, ComputesWhatThePartsDo) {
  Schedule one = Map("neg", 8);
  Schedule two = Map("abs", 6);
  auto joined = PutSideBySide({&one, &two}, {{0, 1}, {2, 3}});
  ASSERT_TRUE(joined.ok()) << joined.status();
  // Inputs come first, then outputs.
  std::vector<HostTensor> params;
  for (int64_t extent : {8, 6, 8, 6}) {
    params.emplace_back(DType::kF32, Dims{extent});
    for (float& v : params.back().data<float>()) v = -3;
  }
  absl::Status status = Interpret(joined->schedule, &params);
  ASSERT_TRUE(status.ok()) << status;
  for (size_t p : {2, 3}) {
    for (float v : params[p].data<float>()) EXPECT_EQ(v, 3) << "param " << p;
  }
}

TEST(PutSideBySide, AnInputThatAnotherPartReadsIsNotOverwritten) {
  Schedule one = Map("neg", 8);
  Schedule two = Map("abs", 8);
  auto shared = PutSideBySide({&one, &two}, {{5, 6}, {5, 7}});
  ASSERT_TRUE(shared.ok());
  EXPECT_TRUE(shared->schedule.may_alias.empty());
  auto apart = PutSideBySide({&one, &two}, {{4, 6}, {5, 7}});
  ASSERT_TRUE(apart.ok());
  EXPECT_EQ(apart->schedule.may_alias.size(), 2u);
}

TEST(PutSideBySide, APartWithoutWorkStaysAlone) {
  Schedule one = Map("neg", 8);
  Schedule none = Map("abs", 0);
  auto joined = PutSideBySide({&one, &none}, {{0, 1}, {2, 3}});
  EXPECT_EQ(joined.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(joined.status())),
              Eq("empty: abs has no work: its dim i is empty"));
}

TEST(PutSideBySide, APartOfSeveralPhasesStaysAlone) {
  Schedule one = Map("neg", 8);
  Schedule two = Map("abs", 8);
  auto phases = PutInPhases({&one, &two}, {{4, 5}, {5, 6}}, {6});
  ASSERT_TRUE(phases.ok()) << phases.status();
  auto joined = PutSideBySide({&phases->schedule, &one}, {{0, 1}, {2, 3}});
  EXPECT_THAT(std::string(Message(joined.status())),
              Eq("side-by-side: neg, then abs has 2 phases"));
}

TEST(PutInPhases, APartWithoutWorkStaysAlone) {
  Schedule one = Map("neg", 8);
  Schedule none = Map("abs", 0);
  auto joined = PutInPhases({&one, &none}, {{0, 1}, {2, 3}}, {1, 3});
  EXPECT_THAT(std::string(Message(joined.status())),
              Eq("empty: abs has no work: its dim i is empty"));
}

TEST(PutInPhases, LaterPartsReadWhatEarlierOnesWrite) {
  Schedule one = Map("neg", 8);
  Schedule two = Map("abs", 8);
  for (bool kept : {false, true}) {
    auto joined = PutInPhases({&one, &two}, {{4, 5}, {5, 6}},
                              kept ? std::vector<int>{5, 6} : std::vector<int>{6});
    ASSERT_TRUE(joined.ok()) << joined.status();
    const Schedule& s = joined->schedule;
    SCOPED_TRACE(ToString(s));
    EXPECT_TRUE(Verify(s).ok()) << Verify(s);
    EXPECT_EQ(s.phases.size(), 2u);
    EXPECT_EQ(s.params, kept ? 3 : 2);
    auto again = ParseSchedule(ToString(s));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(ToString(*again), ToString(s));
    std::vector<HostTensor> params;
    for (int p = 0; p < s.params; ++p) {
      params.emplace_back(DType::kF32, Dims{8});
      for (float& v : params.back().data<float>()) v = 3;
    }
    ASSERT_TRUE(Interpret(s, &params).ok());
    for (float v : params.back().data<float>()) EXPECT_EQ(v, 3);
    if (kept) {
      for (float v : params[1].data<float>()) EXPECT_EQ(v, -3);
    }
    EXPECT_EQ(PlanWorkspace(s).bytes, kept ? 0 : 64);
  }
}

TEST(PutInPhases, PartsMayHaveSeveralPhasesThemselves) {
  Schedule one = Map("neg", 8);
  Schedule two = Map("abs", 8);
  auto inner = PutInPhases({&one, &two}, {{4, 5}, {5, 6}}, {6});
  ASSERT_TRUE(inner.ok()) << inner.status();
  auto outer =
      PutInPhases({&inner->schedule, &one, &inner->schedule}, {{0, 1}, {1, 2}, {2, 3}}, {3});
  ASSERT_TRUE(outer.ok()) << outer.status();
  const Schedule& s = outer->schedule;
  SCOPED_TRACE(ToString(s));
  EXPECT_TRUE(Verify(s).ok()) << Verify(s);
  EXPECT_EQ(s.phases.size(), 5u);
  EXPECT_EQ(s.params, 2);
  EXPECT_EQ(ToString(ParseSchedule(ToString(s)).value()), ToString(s));
  std::vector<HostTensor> params;
  for (int p = 0; p < s.params; ++p) {
    params.emplace_back(DType::kF32, Dims{8});
    for (float& v : params.back().data<float>()) v = 3;
  }
  ASSERT_TRUE(Interpret(s, &params).ok());
  for (float v : params.back().data<float>()) EXPECT_EQ(v, 3);
  // No two results that lie beside each other in time share a place.
  EXPECT_EQ(PlanWorkspace(s).bytes, 2 * 64);
}

TEST(PutInPhases, MemoryIsReadUnderAnotherShape) {
  Schedule one = Map("neg", 8);
  Schedule rows = ScheduleOf(R"(schedule "rows" {
  dims i:2 j:4
  param p0 input f32[2,4] strides [4, 1]
  param p1 output f32[2] strides [1]
  phase {
    segment i:1 {
      alloc t0 staged f32[i]
      init t0 = sum
      each [i, j] {
        v0 = load p0[i, j]
        reduce sum t0[i] = v0
      }
      each [i] {
        v0 = load t0[i]
        store p1[i] = v0
      }
    }
  }
}
)");
  for (bool kept : {false, true}) {
    auto joined = PutInPhases({&one, &rows}, {{4, 5}, {5, 6}},
                              kept ? std::vector<int>{5, 6} : std::vector<int>{6});
    ASSERT_TRUE(joined.ok()) << joined.status();
    const Schedule& s = joined->schedule;
    SCOPED_TRACE(ToString(s));
    EXPECT_TRUE(Verify(s).ok()) << Verify(s);
    std::vector<HostTensor> params;
    for (int p = 0; p < s.params; ++p) params.emplace_back(DType::kF32, s.buffer(p).shape);
    float x = 0;
    for (float& v : params[0].data<float>()) v = x++;
    ASSERT_TRUE(Interpret(s, &params).ok());
    EXPECT_EQ(params.back().data<float>()[0], -6);
    EXPECT_EQ(params.back().data<float>()[1], -22);
    auto again = ParseSchedule(ToString(s));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(ToString(*again), ToString(s));
  }
  rows.buffers[0].layout.strides = {1, 2};
  auto joined = PutInPhases({&one, &rows}, {{4, 5}, {5, 6}}, {6});
  EXPECT_THAT(std::string(Message(joined.status())),
              Eq("layout: rows reads [2,4] in another order than neg writes [8]"));
}

TEST(Workspace, IsReadAfterThePhaseThatWritesIt) {
  Schedule one = Map("neg", 8);
  Schedule two = Map("abs", 8);
  auto joined = PutInPhases({&one, &two}, {{4, 5}, {5, 6}}, {6});
  ASSERT_TRUE(joined.ok()) << joined.status();
  Schedule s = joined->schedule;
  std::swap(s.phases[0], s.phases[1]);
  EXPECT_THAT(std::string(Message(Verify(s))), HasSubstr("w0 is read before it is written"));
  s = joined->schedule;
  s.phases[0].segments.push_back(s.phases[1].segments[0]);
  s.phases.pop_back();
  EXPECT_THAT(std::string(Message(Verify(s))), HasSubstr("in the phase that writes it"));
}

TEST(Workspace, LivesFromItsFirstPhaseToItsLast) {
  Schedule parts[] = {Map("neg", 16), Map("abs", 16), Map("neg", 16), Map("abs", 16)};
  auto joined = PutInPhases({&parts[0], &parts[1], &parts[2], &parts[3]},
                            {{1, 2}, {2, 3}, {3, 4}, {4, 5}}, {5});
  ASSERT_TRUE(joined.ok()) << joined.status();
  // The third value takes the place of the first.
  EXPECT_EQ(PlanWorkspace(joined->schedule).bytes, 128);
}

}  // namespace
}  // namespace fusion
