#include "client/reports/background_load.h"

#include <gtest/gtest.h>

#include <vector>

namespace fusion {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Counters = BackgroundLoad::Counters;

TEST(BackgroundLoad, ReadsTheLineOfAllCpus) {
  const std::string text = "cpu  100 20 30 400 50 1 2 7 9 9\ncpu0 1 1 1 1 1 1 1 1 1 1\nintr 12\n";
  const std::optional<Counters> counters = ParseCpuStat(text, 100);
  ASSERT_TRUE(counters.has_value());
  EXPECT_EQ(counters->all, milliseconds(6100)) << "guests are part of user";
  EXPECT_EQ(counters->busy, milliseconds(1600));
  for (const char* bad : {"", "cpu", "cpu 1 2 3", "cpu0 1 2 3 4 5", "cpu 1 -2 3 4 5",
                          "cpu 9223372036854775807 1 1 1 1", "cpu one two"}) {
    EXPECT_FALSE(ParseCpuStat(bad, 100).has_value()) << bad;
  }
}

TEST(BackgroundLoad, IsWhatOthersUsedOfAllTime) {
  std::vector<std::optional<Counters>> readings = {
      Counters{.busy = seconds(10), .all = seconds(100), .own = seconds(5)},
      Counters{.busy = seconds(16), .all = seconds(110), .own = seconds(8)},
      Counters{.busy = seconds(16), .all = seconds(110) + milliseconds(20), .own = seconds(8)},
      Counters{.busy = seconds(19), .all = seconds(120), .own = seconds(11)},
      std::nullopt,
      Counters{.busy = seconds(25), .all = seconds(130), .own = seconds(12)},
      Counters{.busy = seconds(26), .all = seconds(140), .own = seconds(14)}};
  size_t next = 0;
  BackgroundLoad load([&] { return readings[next++]; });
  EXPECT_DOUBLE_EQ(load.Take().value(), 0.3);
  EXPECT_FALSE(load.Take().has_value()) << "too short";
  EXPECT_DOUBLE_EQ(load.Take().value(), 0) << "all of it was this process";
  EXPECT_FALSE(load.Take().has_value());
  EXPECT_FALSE(load.Take().has_value()) << "nothing to compare with";
  EXPECT_DOUBLE_EQ(load.Take().value(), 0) << "not negative";
}

TEST(BackgroundLoad, ThisMachineHasCounters) {
  const std::optional<Counters> counters = BackgroundLoad::ReadCounters();
  ASSERT_TRUE(counters.has_value());
  EXPECT_GT(counters->all, counters->busy);
  EXPECT_GT(counters->busy, Nanoseconds(0));
  EXPECT_GE(counters->own, Nanoseconds(0));
}

}  // namespace
}  // namespace fusion
