#include "server/admission/rapid_reset_detector.h"

#include <gtest/gtest.h>

#include "tests/support/fake_clock.h"

namespace fusion {
namespace {

TEST(RapidResetDetector, OneThatTakesBackAThousandInASecondIsNamedOnce) {
  FakeClock clock;
  RapidResetDetector peers(clock);
  for (int64_t i = 1; i < RapidResetDetector::kMostTakenBack; ++i) {
    ASSERT_FALSE(peers.Note("a")) << i;
    if (i % 2 == 0) {
      ASSERT_FALSE(peers.Note("b")) << "others are counted apart";
    }
  }
  EXPECT_TRUE(peers.Note("a"));
  EXPECT_FALSE(peers.Note("a")) << "it was said";
}

TEST(RapidResetDetector, SecondsAreCountedApart) {
  FakeClock clock;
  RapidResetDetector peers(clock);
  for (int second = 0; second < 3; ++second) {
    for (int64_t i = 1; i < RapidResetDetector::kMostTakenBack; ++i) ASSERT_FALSE(peers.Note("a"));
    clock.Advance(std::chrono::seconds(1));
  }
}

}  // namespace
}  // namespace fusion
