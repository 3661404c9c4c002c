#include "core/base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace fusion {
namespace {

TEST(ThreadPool, StopRunsEverythingThatWasAccepted) {
  std::atomic<int> ran{0};
  ThreadPool pool(3, 1000);
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(pool.Submit([&] { ++ran; }).ok());
  pool.Stop();
  EXPECT_EQ(ran, 500);
  EXPECT_EQ(pool.Submit([] {}).code(), absl::StatusCode::kUnavailable);
}

TEST(ThreadPool, AFullQueueRefuses) {
  std::promise<void> release;
  std::promise<void> started;
  ThreadPool pool(1, 2);
  ASSERT_TRUE(pool.Submit([&, gate = release.get_future().share()] {
                    started.set_value();
                    gate.wait();
                  })
                  .ok());
  started.get_future().wait();
  EXPECT_TRUE(pool.Submit([] {}).ok());
  EXPECT_TRUE(pool.Submit([] {}).ok());
  EXPECT_EQ(pool.queued(), 2u);
  EXPECT_EQ(pool.Submit([] {}).code(), absl::StatusCode::kResourceExhausted);
  release.set_value();
}

TEST(ThreadPool, TasksMaySubmitTasks) {
  std::promise<int> result;
  ThreadPool pool(1, 10);
  ASSERT_TRUE(
      pool.Submit([&] { ASSERT_TRUE(pool.Submit([&] { result.set_value(7); }).ok()); }).ok());
  EXPECT_EQ(result.get_future().get(), 7);
}

}  // namespace
}  // namespace fusion
