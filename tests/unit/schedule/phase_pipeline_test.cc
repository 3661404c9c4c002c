// Phases that run slice by slice without a barrier: when they may, and that they compute the same.
#include "core/schedule/ir/phase_pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/schedule/ir/join.h"
#include "core/schedule/lower/interpret.h"
#include "tests/support/schedule_text.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

// y[i, j] = -x[at] in blocks of the tiles in `grid`.
Schedule Map(const std::string& grid, const std::string& at = "i, j") {
  return ScheduleOf(StrCat(R"(schedule "neg" {
  dims i:12 j:12
  param p0 input f32[12,12] strides [12, 1]
  param p1 output f32[12,12] strides [12, 1]
  phase {
    segment )",
                           grid, R"( {
      each [i, j] {
        v0 = load p0[)",
                           at, R"(]
        v1 = neg(v0)
        store p1[i, j] = v1
      }
    }
  }
}
)"));
}

// y[i, j] = x[i, j] + sum of x[i, ..], in blocks of `tile` rows.
Schedule AddRowSum(int64_t tile) {
  return ScheduleOf(StrCat(R"(schedule "rows" {
  dims i:12 j:12
  param p0 input f32[12,12] strides [12, 1]
  param p1 output f32[12,12] strides [12, 1]
  phase {
    segment i:)",
                           tile, R"( {
      alloc t0 staged f32[i]
      init t0 = sum
      each [i, j] {
        v0 = load p0[i, j]
        reduce sum t0[i] = v0
      }
      each [i, j] {
        v0 = load t0[i]
        v1 = load p0[i, j]
        v2 = add(v0, v1)
        store p1[i, j] = v2
      }
    }
  }
}
)"));
}

// One behind the other; what lies between them is kept for the caller if `kept`.
Schedule InTurn(const std::vector<Schedule>& parts, bool kept = false) {
  std::vector<const Schedule*> list;
  std::vector<std::vector<int>> values;
  std::vector<int> outside;
  for (const Schedule& part : parts) {
    const int value = static_cast<int>(list.size());
    list.push_back(&part);
    values.push_back({value, value + 1});
    if (kept || list.size() == parts.size()) outside.push_back(value + 1);
  }
  auto joined = PutInPhases(list, values, outside);
  FUSION_CHECK(joined.ok(), Message(joined.status()));
  return std::move(joined->schedule);
}

std::vector<HostTensor> Computed(const Schedule& s) {
  std::vector<HostTensor> params;
  for (int p = 0; p < s.params; ++p) params.emplace_back(DType::kF32, s.buffer(p).shape);
  float x = 0;
  for (float& v : params[0].data<float>()) v = x++;
  FUSION_CHECK(Interpret(s, &params).ok(), "runs");
  return params;
}

void ExpectSameResults(const Schedule& one, const Schedule& other) {
  std::vector<HostTensor> wanted = Computed(one);
  std::vector<HostTensor> got = Computed(other);
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t p = 0; p < wanted.size(); ++p) {
    for (size_t i = 0; i < 144; ++i) {
      ASSERT_EQ(got[p].data<float>()[i], wanted[p].data<float>()[i]) << p << ", " << i;
    }
  }
}

std::string WhyNot(const Schedule& s, int phases = 2) {
  auto slices = FindSlices(s, 0, phases);
  return slices.ok() ? "" : std::string(Message(slices.status()));
}

TEST(PhasePipeline, TakesSlicesOfWholeTilesThroughAllPhases) {
  for (bool kept : {false, true}) {
    Schedule apart = InTurn({Map("i:2 j:4"), AddRowSum(3), Map("j:5 i:1")}, kept);
    auto slices = FindSlices(apart, 0, 3);
    ASSERT_TRUE(slices.ok()) << slices.status();
    ASSERT_EQ(slices->size(), 1u) << "rows sums need whole rows";
    EXPECT_EQ(slices->at(0).tile, 6);
    EXPECT_EQ(apart.dim(slices->at(0).dims[2]).name, "s2_i");
    Schedule s = RunAsPipeline(apart, {.first = 0, .phases = 3, .slices = *slices});
    SCOPED_TRACE(ToString(s));
    EXPECT_TRUE(Verify(s).ok()) << Verify(s);
    EXPECT_EQ(s.phases.size(), 1u);
    EXPECT_EQ(s.Tasks(0), 2);
    EXPECT_EQ(CountPhases(s), 3);
    EXPECT_EQ(ToString(ParseSchedule(ToString(s)).value()), ToString(s));
    ExpectSameResults(apart, s);
    std::vector<Stage> stages = StagesOf(s.phases[0].segments[0]);
    ASSERT_EQ(stages.size(), 3u);
    EXPECT_EQ(stages[0].loops.size(), 2u);
    EXPECT_EQ(stages[1].loops.size(), 1u);
    EXPECT_EQ(stages[1].body->size(), 4u);
  }
}

TEST(PhasePipeline, TakesSlicesOfSeveralDims) {
  Schedule apart = InTurn({Map("i:2 j:4"), Map("j:2 i:3")});
  auto slices = FindSlices(apart, 0, 2);
  ASSERT_TRUE(slices.ok()) << slices.status();
  ASSERT_EQ(slices->size(), 2u);
  Schedule s = RunAsPipeline(apart, {.first = 0, .phases = 2, .slices = *slices});
  EXPECT_TRUE(Verify(s).ok()) << Verify(s);
  EXPECT_EQ(s.Tasks(0), 2 * 3);
  ExpectSameResults(apart, s);
}

TEST(PhasePipeline, StandsBetweenOtherPhases) {
  Schedule apart = InTurn({AddRowSum(2), AddRowSum(3), AddRowSum(1), Map("i:1", "j, i")});
  auto slices = FindSlices(apart, 1, 2);
  ASSERT_TRUE(slices.ok()) << slices.status();
  slices->at(0).tile = 6;
  Schedule s = RunAsPipeline(apart, {.first = 1, .phases = 2, .slices = *slices});
  EXPECT_TRUE(Verify(s).ok()) << Verify(s);
  EXPECT_EQ(s.phases.size(), 3u);
  EXPECT_EQ(s.Tasks(1), 2);
  ExpectSameResults(apart, s);
}

TEST(PhasePipeline, IsNoneWhereASliceNeedsWhatOthersWrite) {
  EXPECT_THAT(WhyNot(InTurn({Map("j:4"), AddRowSum(3)})),
              HasSubstr("pipeline: w0 is not touched in slices of s0_j and s1_i"));
  EXPECT_THAT(WhyNot(InTurn({Map("i:4"), Map("i:4", "j, i")})), HasSubstr("w0 is not touched"));
  EXPECT_THAT(WhyNot(InTurn({Map("i:2"), Map("i:4", "-1 * i + 11, j")})),
              HasSubstr("w0 is not touched"));
  EXPECT_THAT(WhyNot(InTurn({Map("i:4"), Map("i:6")})),
              HasSubstr("whole tiles of all phases are 12 of s0_i, which is 12"));
  EXPECT_EQ(WhyNot(InTurn({Map("i:4"), Map("i:4")})), "");
  // Not only what the phase just before has written.
  EXPECT_THAT(WhyNot(InTurn({Map("i:4"), Map("i:4"), Map("i:4", "j, i")}), 3),
              HasSubstr("w1 is not touched"));
}

TEST(PhasePipeline, IsNoneOfPartsSideBySideOrBlocksThatOverlap) {
  Schedule two = InTurn({Map("i:4"), Map("i:4")});
  two.phases[0].segments.push_back(two.phases[0].segments[0]);
  EXPECT_THAT(WhyNot(two), HasSubstr("side by side"));
  Schedule halo = InTurn({Map("i:4"), Map("i:4")});
  halo.phases[1].segments[0].halos.push_back({.dim = 3, .reached = {IndexExpr::Axis(2)}});
  EXPECT_THAT(WhyNot(halo), HasSubstr("overlap"));
}

TEST(PhasePipeline, VerifyKnowsWhenBlocksReadWhatOthersWrite) {
  Schedule apart = InTurn({Map("i:4"), Map("i:4", "j, i")});
  std::vector<PipelineSlice> wrong = {{.dims = {0, 2}, .tile = 4}};
  Schedule s = RunAsPipeline(apart, {.first = 0, .phases = 2, .slices = wrong});
  EXPECT_THAT(std::string(Message(Verify(s))), HasSubstr("w0 is read in the phase that writes it"));
}

// y = -x of 144 elements that the phases see under other shapes, in blocks of `tile` elements.
Schedule Flat(int64_t tile) {
  return ScheduleOf(StrCat(R"(schedule "flat" {
  dims e:144
  param p0 input f32[144] strides [1]
  param p1 output f32[144] strides [1]
  phase {
    segment e:)",
                           tile, R"( {
      each [e] {
        v0 = load p0[e]
        v1 = neg(v0)
        store p1[e] = v1
      }
    }
  }
}
)"));
}

TEST(PhasePipeline, FollowsRowsThroughOtherShapes) {
  for (bool kept : {false, true}) {
    Schedule apart = InTurn({AddRowSum(2), Flat(8), AddRowSum(1), Flat(48)}, kept);
    auto slices = FindSlices(apart, 0, 4);
    ASSERT_TRUE(slices.ok()) << slices.status();
    ASSERT_EQ(slices->size(), 1u);
    EXPECT_EQ(apart.dim(slices->at(0).Shortest(apart)).name, "s0_i");
    EXPECT_EQ(slices->at(0).tile, 4) << "48 elements are four rows";
    for (int64_t tile : {4, 8}) {
      slices->at(0).tile = tile;
      Schedule s = RunAsPipeline(apart, {.first = 0, .phases = 4, .slices = *slices});
      SCOPED_TRACE(ToString(s));
      EXPECT_TRUE(Verify(s).ok()) << Verify(s);
      EXPECT_EQ(s.Tasks(0), tile == 4 ? 3 : 2);
      EXPECT_EQ(ToString(ParseSchedule(ToString(s)).value()), ToString(s));
      ExpectSameResults(apart, s);
    }
  }
  Schedule finer = InTurn({Flat(36), AddRowSum(1)});
  auto slices = FindSlices(finer, 0, 2);
  ASSERT_TRUE(slices.ok()) << slices.status();
  EXPECT_EQ(finer.dim(slices->at(0).Shortest(finer)).name, "s1_i") << "the rows";
  EXPECT_EQ(slices->at(0).tile, 3);
  Schedule s = RunAsPipeline(finer, {.first = 0, .phases = 2, .slices = *slices});
  EXPECT_TRUE(Verify(s).ok()) << Verify(s);
  ExpectSameResults(finer, s);
  // Columns are no rows.
  EXPECT_THAT(WhyNot(InTurn({Map("j:4"), Flat(12)})), HasSubstr("w0 is not touched"));
}

TEST(PhasePipeline, VerifyKnowsHowFarAWindowReaches) {
  Schedule apart = InTurn({AddRowSum(2), Flat(24)});
  auto slices = FindSlices(apart, 0, 2);
  ASSERT_TRUE(slices.ok()) << slices.status();
  Schedule s = RunAsPipeline(apart, {.first = 0, .phases = 2, .slices = *slices});
  ASSERT_TRUE(Verify(s).ok()) << Verify(s);
  std::vector<IndexExpr>& reached = s.phases[0].segments[0].halos[0].reached;
  reached.back() = reached.back() + 1;
  EXPECT_THAT(std::string(Message(Verify(s))), HasSubstr("w1 is read in the phase that writes it"));
}

}  // namespace
}  // namespace fusion
