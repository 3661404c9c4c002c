#include "core/base/threads/result_cell.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "tests/support/fake_clock.h"

namespace fusion {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// How often the calling thread has gone to sleep.
int64_t Sleeps() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

TEST(CancelToken, AWatchIsToldOfItsTokenAndOfThoseThatItEndsWith) {
  CancelToken request;
  CancelToken stage(request, Nanoseconds::max());
  CancelToken other;
  int told = 0;
  {
    CancelToken::Watch watch(stage, [&] { ++told; });
    other.Cancel();
    EXPECT_EQ(told, 0);
    request.Cancel();
    EXPECT_EQ(told, 1);
    stage.Cancel();
    EXPECT_EQ(told, 2);
  }
  request.Cancel();
  EXPECT_EQ(told, 2) << "it has ended";
}

TEST(CancelToken, WhatNeedsALookIsSaid) {
  FakeClock clock;
  Interest interest(Clock::Real(), seconds(1));
  CancelToken request;
  CancelToken told_time(clock, seconds(1));
  EXPECT_TRUE(request.EndsBySignal());
  EXPECT_TRUE(CancelToken(request, Nanoseconds::max()).EndsBySignal());
  EXPECT_FALSE(told_time.EndsBySignal());
  CancelToken wanted(request, Nanoseconds::max(), interest);
  EXPECT_FALSE(wanted.EndsBySignal());
  EXPECT_FALSE(CancelToken(wanted, Nanoseconds::max()).EndsBySignal()) << "its parent needs it";
}

TEST(ResultCell, AWaiterSleepsUntilThereIsAResult) {
  ResultCell<int> cell;
  CancelToken request;
  CancelToken stage(request, Clock::Real().Now() + seconds(600));
  std::atomic<int64_t> sleeps{-1};
  std::thread waiter([&] {
    const int64_t before = Sleeps();
    EXPECT_EQ(*cell.Wait(stage), 7);
    sleeps = Sleeps() - before;
  });
  std::this_thread::sleep_for(milliseconds(500));
  cell.Set(7);
  waiter.join();
  EXPECT_LT(sleeps, 10) << "looks that find nothing are CPU that the work lacks";
}

// Each would go on to the end of its slice, of about a second.
TEST(ResultCell, CancellingWakesWhoWaits) {
  ResultCell<int> cell;
  const Nanoseconds start = Clock::Real().Now();
  for (int i = 0; i < 12; ++i) {
    CancelToken request;
    CancelToken stage(request, Nanoseconds::max());
    std::atomic<bool> waits{false};
    std::thread waiter([&] {
      waits = true;
      EXPECT_EQ(cell.Wait(i % 2 == 0 ? request : stage).status().code(),
                absl::StatusCode::kCancelled);
    });
    while (!waits) std::this_thread::yield();
    std::this_thread::sleep_for(milliseconds(5));
    request.Cancel();
    waiter.join();
  }
  EXPECT_LT(Clock::Real().Now() - start, seconds(6));
}

TEST(ResultCell, ADeadlineEndsTheWait) {
  ResultCell<int> cell;
  CancelToken hurried(Clock::Real(), Clock::Real().Now() + milliseconds(30));
  EXPECT_EQ(cell.Wait(hurried).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_FALSE(cell.IsSet());
}

TEST(ResultCell, LostInterestEndsTheWaitWithoutASignal) {
  ResultCell<int> cell;
  Interest interest(Clock::Real(), milliseconds(1));
  ASSERT_TRUE(interest.Join("acme"));
  CancelToken request;
  CancelToken wanted(request, Nanoseconds::max(), interest);
  std::thread waiter(
      [&] { EXPECT_EQ(cell.Wait(wanted).status().code(), absl::StatusCode::kCancelled); });
  interest.Leave("acme");
  waiter.join();
}

TEST(ResultCell, WhoeverIsToldMeanwhileIsToldNowAndThen) {
  ResultCell<int> cell;
  int told = 0;
  EXPECT_EQ(*cell.Wait(CancelToken(),
                       [&] {
                         if (++told == 5) cell.Set(3);
                       }),
            3);
  EXPECT_EQ(told, 5);
}

TEST(ResultCell, ManyWaitersAndTheirCancellersAtOnce) {
  for (int round = 0; round < 200; ++round) {
    ResultCell<int> cell;
    std::vector<std::unique_ptr<CancelToken>> tokens(8);
    for (auto& token : tokens) token = std::make_unique<CancelToken>();
    std::vector<std::thread> threads;
    for (auto& token : tokens) {
      threads.emplace_back([&cell, &token] {
        absl::StatusOr<int> result = cell.Wait(CancelToken(*token, Nanoseconds::max()));
        EXPECT_TRUE(result.ok() || absl::IsCancelled(result.status()));
      });
    }
    for (size_t i = 0; i + 1 < tokens.size(); ++i) tokens[i]->Cancel();
    cell.Set(round);
    for (std::thread& thread : threads) thread.join();
  }
}

}  // namespace
}  // namespace fusion
