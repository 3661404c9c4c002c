#include "core/runtime/usable_cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace fusion {
namespace {

TEST(UsableCores, AreThoseOfTheThreadThatAsks) {
  std::thread([] {
    cpu_set_t all;
    ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
    EXPECT_EQ(UsableCores(), CPU_COUNT(&all));
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<size_t>(sched_getcpu()), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    EXPECT_EQ(UsableCores(), 1);
  }).join();
  EXPECT_GE(UsableCores(), 1);
}

}  // namespace
}  // namespace fusion
