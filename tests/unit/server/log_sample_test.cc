#include "server/admission/log_sample.h"

#include <gtest/gtest.h>

#include "tests/support/fake_clock.h"

namespace fusion {
namespace {

TEST(LogSample, PicksTheFirstOfEverySecondAndCountsTheOthers) {
  FakeClock clock;
  LogSample sample(/*per_second=*/2, clock);
  EXPECT_EQ(sample.Pick(), 0);
  EXPECT_EQ(sample.Pick(), 0);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(sample.Pick(), std::nullopt);
  clock.Advance(std::chrono::seconds(1));
  EXPECT_EQ(sample.Pick(), 5) << "left out since the last line";
  EXPECT_EQ(sample.Pick(), 0);
  EXPECT_EQ(sample.Pick(), std::nullopt);
}

TEST(LogSample, ZeroIsNoneAndBelowItAll) {
  FakeClock clock;
  LogSample none(0, clock);
  LogSample all(-1, clock);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(none.Pick(), std::nullopt);
    EXPECT_EQ(all.Pick(), 0);
  }
}

}  // namespace
}  // namespace fusion
