#include "core/base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "core/base/retry_after.h"

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
  const absl::Status full = pool.Submit([] {});
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(RetryAfterOf(full).has_value()) << "callers try again then";
  release.set_value();
}

TEST(ThreadPool, SpareThreadsServeWhoHasLittleUnderWay) {
  std::promise<void> open;
  std::shared_future<void> gate = open.get_future().share();
  std::atomic<int> greedy{0};
  ThreadPool pool(2, 100, /*spare=*/1);
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(pool.SubmitFor({"greedy"}, {[&, gate] {
                                 ++greedy;
                                 gate.wait();
                               }})
                    .ok());
  }
  for (int i = 0; i < 3; ++i) {
    std::promise<void> ran;
    ASSERT_TRUE(pool.SubmitFor({"modest"}, {[&] { ran.set_value(); }}).ok());
    EXPECT_EQ(ran.get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready)
        << "though all usual threads are taken";
  }
  EXPECT_LE(greedy, 3) << "no more than one beyond the usual threads, which came first";
  open.set_value();
  pool.Stop();
  EXPECT_EQ(greedy, 5);
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
