#include "core/base/threads/shortage.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <new>
#include <stdexcept>
#include <system_error>

#include "core/base/sanitizer.h"

namespace fusion {
namespace {

template <typename Error>
bool Is(const Error& error) {
  return IsShortage(std::make_exception_ptr(error));
}

TEST(Shortage, MemoryAndThreads) {
  EXPECT_TRUE(Is(std::bad_alloc()));
  EXPECT_TRUE(Is(std::bad_array_new_length()));
  EXPECT_TRUE(Is(std::length_error("vector::reserve")));
  EXPECT_TRUE(Is(std::system_error(EAGAIN, std::generic_category())));
  EXPECT_TRUE(Is(std::system_error(ENOMEM, std::generic_category())));
}

TEST(Shortage, NothingElse) {
  EXPECT_FALSE(IsShortage(nullptr));
  EXPECT_FALSE(Is(std::system_error(EINVAL, std::generic_category())));
  EXPECT_FALSE(Is(std::out_of_range("at")));
  EXPECT_FALSE(Is(std::future_error(std::future_errc::broken_promise)));
  EXPECT_FALSE(Is(1));
}

TEST(Shortage, ThreadsThatCanRun) {
  EXPECT_TRUE(CheckThreads(0).ok());
  EXPECT_TRUE(CheckThreads(16).ok());
}

// In a process of its own, whose stacks have no room any more.
TEST(Shortage, ThreadsThatCannotRun) {
  if (kSanitized) GTEST_SKIP() << "sanitizers have reserved more addresses than that";
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    rlimit none{};
    if (getrlimit(RLIMIT_AS, &none) != 0) _exit(3);
    none.rlim_cur = 1;  // nothing more is mapped
    if (setrlimit(RLIMIT_AS, &none) != 0) _exit(3);
    // More than the stacks that the C library keeps.
    _exit(absl::IsResourceExhausted(CheckThreads(64)) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace fusion
