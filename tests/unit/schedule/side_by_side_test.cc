#include "core/schedule/side_by_side.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/schedule/interpret.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

Schedule Parse(std::string_view text) {
  auto schedule = ParseSchedule(text);
  FUSION_CHECK(schedule.ok(), Message(schedule.status()));
  return *std::move(schedule);
}

// y[i] = function(x[i]), in blocks of four.
Schedule Map(const std::string& function, int64_t extent) {
  return Parse(StrCat("schedule \"", function, "\" {\n  dims i:", extent, "\n  param p0 input f32[",
                      extent, "] strides [1]\n  param p1 output f32[", extent, "] strides [1]\n",
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
  EXPECT_THAT(std::string(Message(joined.status())), HasSubstr("empty:"));
}

}  // namespace
}  // namespace fusion
