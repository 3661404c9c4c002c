#include "core/runtime/task_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <thread>

namespace fusion {
namespace {

// Enough for the thread that is waited for to run on however busy a machine.
template <typename Condition>
bool Await(const Condition& condition) {
  auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

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

TEST(TaskPool, CallsFromSeveralThreadsAreAllServed) {
  TaskPool pool(3, /*cores=*/8);
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

TEST(TaskPool, ARunDoesNotWaitForAnother) {
  TaskPool pool(2, /*cores=*/8);
  std::atomic<int> at_work{0};
  std::atomic<bool> release{false};
  std::thread first([&] {
    pool.Run(2, [&](int64_t, int64_t, int) {
      ++at_work;
      EXPECT_TRUE(Await([&] { return release.load(); }));
    });
  });
  // Both threads of the pool are at the first run until the second is over.
  ASSERT_TRUE(Await([&] { return at_work == 2; }));
  std::set<int> workers;
  pool.Run(10, [&](int64_t, int64_t, int worker) { workers.insert(worker); });
  EXPECT_EQ(workers, std::set<int>{0});
  release = true;
  first.join();
}

TEST(TaskPool, ARunTakesTheWorkersAsSoonAsTheyAreFree) {
  TaskPool pool(2, /*cores=*/8);
  std::atomic<int> at_work{0};
  std::atomic<bool> release{false};
  std::atomic<bool> first_is_over{false};
  std::thread first([&] {
    pool.Run(2, [&](int64_t, int64_t, int) {
      ++at_work;
      EXPECT_TRUE(Await([&] { return release.load(); }));
    });
    first_is_over = true;
  });
  ASSERT_TRUE(Await([&] { return at_work == 2; }));
  std::atomic<int> together{0};
  pool.Run(3, [&](int64_t begin, int64_t, int) {
    if (begin == 0) {
      release = true;
      EXPECT_TRUE(Await([&] { return first_is_over.load(); }));
      return;
    }
    ++together;  // these two are done by two threads, or never
    EXPECT_TRUE(Await([&] { return together == 2; }));
  });
  first.join();
}

TEST(TaskPool, WithARunForEveryCoreEachStaysOnItsThread) {
  TaskPool pool(4, /*cores=*/1);
  std::set<std::thread::id> threads;
  for (int round = 0; round < 100; ++round) {
    pool.Run(10, [&](int64_t, int64_t, int) { threads.insert(std::this_thread::get_id()); });
  }
  EXPECT_EQ(threads, std::set<std::thread::id>{std::this_thread::get_id()});
}

TEST(TaskPool, MoreThreadsThanCoresStillHelpEachOther) {
  TaskPool pool(6, /*cores=*/2);
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> together{0};
    pool.Run(6, [&](int64_t, int64_t, int) {
      ++together;
      EXPECT_TRUE(Await([&] { return together == 6; }));
    });
    EXPECT_EQ(together, 6);
  }
}

TEST(TaskPool, ACallerWaitsForATaskThatTakesLong) {
  for (int cores : {2, 8}) {  // with 2 nobody spins
    TaskPool pool(3, cores);
    std::atomic<bool> helped{false};
    std::atomic<int64_t> done{0};
    pool.Run(3, [&](int64_t begin, int64_t end, int worker) {
      if (worker == 0) {
        EXPECT_TRUE(Await([&] { return helped.load(); }));
      } else {
        helped = true;
        // Longer than anybody spins; the caller's own tasks are over before.
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
      done += end - begin;
    });
    EXPECT_EQ(done, 3);
  }
}

TEST(TaskPool, TakesNoTimeWhenIdle) {
  for (int cores : {2, 8}) {
    TaskPool pool(4, cores);
    std::atomic<int> done{0};
    for (int round = 0; round < 100; ++round) pool.Run(8, [&](auto, auto, int) { ++done; });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    double before = CpuSeconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    EXPECT_LT(CpuSeconds() - before, 0.05);  // one thread that spins takes six times as much
  }
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
