#include "core/device/host_isa.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace fusion {
namespace {

#if defined(__x86_64__) && defined(__linux__)

[[noreturn]] void LookWithASmallStackForSignals() {
  static std::vector<char> small(8192);
  stack_t stack = {};
  stack.ss_sp = small.data();
  stack.ss_size = small.size();
  if (sigaltstack(&stack, nullptr) != 0) std::_Exit(2);
  std::fprintf(stderr, "level %s", std::string(HostIsaName()).c_str());
  std::_Exit(HostRuns(Isa::kAvx512Amx) ? 1 : 0);
}

// Where a thread has a stack for signals that could not hold tiles Linux refuses them: what is left
// is the level below, in a process that goes on.
TEST(HostIsaDeathTest, WithoutLeaveToUseTilesTheLevelIsTheOneBelow) {
  // The child is a process of its own, which must not have asked before.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(LookWithASmallStackForSignals(), testing::ExitedWithCode(0), "level (avx|x86-64)");
}

#endif

}  // namespace
}  // namespace fusion
