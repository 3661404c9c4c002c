#include "core/base/threads/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "core/base/threads/retry_after.h"

namespace fusion {
namespace {

TEST(ThreadPool, StopRunsEverythingThatWasAccepted) {
  std::atomic<int> ran{0};
  ThreadPool pool("test", 3, 1000);
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(pool.Submit([&] { ++ran; }).ok());
  pool.Stop();
  EXPECT_EQ(ran, 500);
  EXPECT_EQ(pool.Submit([] {}).code(), absl::StatusCode::kUnavailable);
}

TEST(ThreadPool, AFullQueueRefuses) {
  std::promise<void> release;
  std::promise<void> started;
  ThreadPool pool("test", 1, 2);
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
  ThreadPool pool("test", 2, 100, /*spare=*/1);
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
  EXPECT_LE(greedy, 2) << "no more than the usual threads in all, wherever they run";
  open.set_value();
  pool.Stop();
  EXPECT_EQ(greedy, 5);
}

TEST(ThreadPool, WhoLeavesASpareThreadMakesRoomOnAnIdleUsualOne) {
  std::promise<void> first, second;
  std::atomic<int> begun{0};
  ThreadPool pool("test", 1, 100, /*spare=*/1);
  auto wait_for = [&](std::promise<void>& gate) {
    return [&, open = gate.get_future().share()] {
      ++begun;
      open.wait();
    };
  };
  ASSERT_TRUE(pool.SubmitFor({"one"}, {wait_for(first)}).ok());
  ASSERT_TRUE(pool.SubmitFor({"one"}, {wait_for(second)}).ok());
  for (int i = 0; i < 1000 && begun < 1; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(begun, 1) << "one at a time, on whichever thread it is";
  const auto start = std::chrono::steady_clock::now();
  first.set_value();
  while (begun < 2 && std::chrono::steady_clock::now() - start < std::chrono::seconds(30)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(begun, 2);
  second.set_value();
}

TEST(ThreadPool, TasksMaySubmitTasks) {
  std::promise<int> result;
  ThreadPool pool("test", 1, 10);
  ASSERT_TRUE(
      pool.Submit([&] { ASSERT_TRUE(pool.Submit([&] { result.set_value(7); }).ok()); }).ok());
  EXPECT_EQ(result.get_future().get(), 7);
}

}  // namespace
}  // namespace fusion
