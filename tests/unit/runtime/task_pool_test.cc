#include "core/runtime/task_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace fusion {
namespace {

TEST(TaskPool, DoesEveryTaskOnceWhateverTheThreads) {
  for (int threads : {1, 2, 3, 8}) {
    TaskPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (int64_t n : {0, 1, 2, 7, 64, 1000}) {
      std::vector<std::atomic<int>> done(static_cast<size_t>(n));
      std::atomic<bool> in_range{true};
      pool.Run(n, [&](int64_t begin, int64_t end, int worker) {
        if (begin < 0 || begin >= end || end > n || worker < 0 || worker >= threads) {
          in_range = false;
          return;
        }
        for (int64_t t = begin; t < end; ++t) ++done[static_cast<size_t>(t)];
      });
      EXPECT_TRUE(in_range);
      for (const auto& count : done)
        EXPECT_EQ(count, 1) << threads << " threads, " << n << " tasks";
    }
  }
}

TEST(TaskPool, IsDoneWhenRunReturns) {
  TaskPool pool(4);
  for (int round = 0; round < 3000; ++round) {
    // On this stack: a late worker would be seen by the sanitizers, or by the next round.
    std::vector<int> written(16, 0);
    pool.Run(16, [&](int64_t begin, int64_t end, int) {
      for (int64_t t = begin; t < end; ++t) written[static_cast<size_t>(t)] = round + 1;
    });
    for (int value : written) ASSERT_EQ(value, round + 1);
  }
}

TEST(TaskPool, NoWorkerNumberIsUsedTwiceAtOnce) {
  constexpr int kThreads = 4;
  TaskPool pool(kThreads);
  std::vector<std::atomic<int>> busy(kThreads);
  std::atomic<int> clashes{0};
  for (int round = 0; round < 200; ++round) {
    pool.Run(64, [&](int64_t, int64_t, int worker) {
      if (busy[static_cast<size_t>(worker)].fetch_add(1) != 0) ++clashes;
      busy[static_cast<size_t>(worker)].fetch_sub(1);
    });
  }
  EXPECT_EQ(clashes, 0);
}

TEST(TaskPool, CallsFromSeveralThreadsQueueUp) {
  TaskPool pool(3);
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        pool.Run(10, [&](int64_t begin, int64_t end, int) {
          for (int64_t t = begin; t < end; ++t) sum += t;
        });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 4 * 200 * 45);
}

TEST(TaskPool, ThreadsThatSleepWakeUpAndStop) {
  for (int round = 0; round < 20; ++round) {
    TaskPool pool(4);
    // Long enough for the workers to fall asleep, or not: either must work.
    if (round % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::atomic<int> done{0};
    pool.Run(32, [&](int64_t, int64_t, int) { ++done; });
    EXPECT_EQ(done, 32);
  }
}

}  // namespace
}  // namespace fusion
