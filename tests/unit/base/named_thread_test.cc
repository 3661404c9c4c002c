#include "core/base/threads/named_thread.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <string>

#include "core/base/threads/thread_pool.h"

namespace fusion {
namespace {

std::string OwnName() {
  char name[64] = {};
  EXPECT_EQ(pthread_getname_np(pthread_self(), name, sizeof(name)), 0);
  return name;
}

TEST(NamedThread, RunsItsBodyUnderItsName) {
  std::string name;
  NamedThread("late-writer", [&] { name = OwnName(); }).join();
  EXPECT_EQ(name, "late-writer");
}

TEST(NamedThread, CutsWhatLinuxDoesNotKeep) {
  std::string name;
  NamedThread("fusion-run-4096", [&] { name = OwnName(); }).join();
  EXPECT_EQ(name, "fusion-run-4096");
  NamedThread("a-name-of-twenty-one", [&] { name = OwnName(); }).join();
  EXPECT_EQ(name, "a-name-of-twent");
}

TEST(NamedThread, ThreadsOfAPoolAreNumbered) {
  std::string name;
  ThreadPool pool("plan", 1, 10);
  ASSERT_TRUE(pool.Submit([&] { name = OwnName(); }).ok());
  pool.Stop();
  EXPECT_EQ(name, "plan-0");
}

}  // namespace
}  // namespace fusion
