#include "core/tune/timing_conditions.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

TEST(DisplacedBytes, AreThoseOfTheCachesThatOtherKernelsFill) {
  DeviceSpec device{.threads = 2,
                    .levels = {{.name = "l1", .bytes = 100},
                               {.name = "l2", .bytes = 1000},
                               {.name = "l3", .bytes = 10000, .shared = true},
                               {.name = "memory", .shared = true}}};
  const int64_t any = INT64_MAX;
  EXPECT_EQ(DisplacedBytes(device, 0, any), 0) << "a plan of one kernel finds what it left";
  EXPECT_EQ(DisplacedBytes(device, 199, any), 0);
  EXPECT_EQ(DisplacedBytes(device, 200, any), 400);
  EXPECT_EQ(DisplacedBytes(device, 2500, any), 4000);
  EXPECT_EQ(DisplacedBytes(device, int64_t{1} << 40, any), 20000);
  EXPECT_EQ(DisplacedBytes(device, int64_t{1} << 40, 5000), 5000);
}

TEST(DisplacedBytes, AreNoMoreThanTheMachineHasCaches) {
  EXPECT_EQ(MostDisplacedBytes({.l2_bytes = 1 << 20, .l3_bytes = 8 << 20, .threads = 4}), 16 << 20);
  EXPECT_EQ(MostDisplacedBytes({.l2_bytes = 2 << 20, .l3_bytes = 4 << 20, .threads = 16}),
            64 << 20);
  EXPECT_EQ(MostDisplacedBytes({.l3_bytes = int64_t{1} << 40}), kMostDisplacedBytes);
  EXPECT_EQ(MostDisplacedBytes({}), kMostDisplacedBytes) << "unknown";
}

}  // namespace
}  // namespace fusion
