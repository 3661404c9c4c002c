#include "core/cache/single_flight.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "core/base/thread_pool.h"
#include "tests/support/fake_clock.h"

namespace fusion {
namespace {

using Flights = SingleFlight<std::string, std::string>;
using std::chrono::milliseconds;
using std::chrono::seconds;

Flights::Result Value(const std::string& text) { return std::make_shared<const std::string>(text); }

// Waits for something another thread is about to do; fails the test instead of hanging.
template <typename Condition>
bool Eventually(Condition condition) {
  for (int i = 0; i < 5000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return false;
}

TEST(SingleFlight, EqualCallersShareOneExecution) {
  ThreadPool pool(4, 100);
  Flights flights(pool);
  std::promise<void> release;
  std::shared_future<void> gate = release.get_future().share();
  std::atomic<int> executions{0};
  std::atomic<int> first_callers{0};
  std::vector<std::thread> callers;
  std::vector<Flights::Result> results(16, absl::UnknownError("not run"));
  for (Flights::Result& result : results) {
    callers.emplace_back([&] {
      CancelToken token;
      bool shared = false;
      result = flights.Run("k", token,
                           [&executions, gate](Interest&) {
                             ++executions;
                             gate.wait();
                             return Value("built");
                           },
                           {.shared = &shared});
      if (!shared) ++first_callers;
    });
  }
  EXPECT_TRUE(Eventually([&] { return flights.waiters() == 16; }));
  release.set_value();
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(executions, 1);
  EXPECT_EQ(first_callers, 1);
  EXPECT_EQ(flights.shared_total(), 15);
  EXPECT_EQ(flights.waiters(), 0);
  for (const Flights::Result& result : results) {
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(*result, *results[0]);  // the very same object
  }
}

TEST(SingleFlight, DifferentKeysDoNotWaitForEachOther) {
  ThreadPool pool(2, 10);
  Flights flights(pool);
  CancelToken token;
  std::promise<void> release;
  std::thread slow([&] {
    EXPECT_TRUE(flights
                    .Run("slow", token,
                         [&](Interest&) {
                           release.get_future().wait();
                           return Value("s");
                         })
                    .ok());
  });
  EXPECT_TRUE(Eventually([&] { return flights.waiters() == 1; }));
  EXPECT_EQ(**flights.Run("fast", token, [](Interest&) { return Value("f"); }), "f");
  release.set_value();
  slow.join();
}

TEST(SingleFlight, ACancelledWaiterLeavesAloneAndTheWorkGoesOn) {
  ThreadPool pool(1, 10);
  Flights flights(pool);
  std::promise<void> release;
  CancelToken impatient;
  CancelToken patient;
  std::thread first([&] {
    absl::Status status = flights
                              .Run("k", impatient,
                                   [&](Interest&) {
                                     release.get_future().wait();
                                     return Value("built");
                                   })
                              .status();
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  });
  EXPECT_TRUE(Eventually([&] { return flights.waiters() == 1; }));
  std::thread second([&] {
    EXPECT_EQ(**flights.Run("k", patient, [](Interest&) { return Value("again"); }), "built");
  });
  EXPECT_TRUE(Eventually([&] { return flights.waiters() == 2; }));
  impatient.Cancel();  // the one that started the work
  first.join();
  release.set_value();
  second.join();
}

TEST(SingleFlight, ADeadlineEndsTheWaitNotTheWork) {
  ThreadPool pool(1, 10);
  Flights flights(pool);
  FakeClock clock;
  CancelToken hurried(clock, clock.Now() + seconds(5));
  std::promise<void> release;
  std::promise<void> ended;
  std::thread caller([&] {
    absl::Status status = flights
                              .Run("k", hurried,
                                   [&](Interest&) {
                                     release.get_future().wait();
                                     ended.set_value();
                                     return Value("late");
                                   })
                              .status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  });
  EXPECT_TRUE(Eventually([&] { return flights.waiters() == 1; }));
  clock.Advance(seconds(6));
  caller.join();
  release.set_value();
  ended.get_future().wait();  // it was not cut off
}

// Work that ends when it is told that nobody wants it.
class Abandonable {
 public:
  Flights::Work work() {
    return [this](Interest& interest) -> Flights::Result {
      ++begun;
      while (!release) {
        if (interest.IsLost()) {
          ++given_up;
          return Cancelled("nobody");
        }
        std::this_thread::sleep_for(milliseconds(1));
      }
      return Value("built");
    };
  }
  std::atomic<int> begun{0};
  std::atomic<int> given_up{0};
  std::atomic<bool> release{false};
};

TEST(SingleFlight, WhenTheLastWaiterHasBeenGoneForAWhileTheWorkIsToldAndTheNextCallerBeginsAnew) {
  ThreadPool pool(2, 10);
  FakeClock clock;
  Flights flights(pool, {.linger = seconds(30)}, clock);
  Abandonable abandonable;
  CancelToken leaving;
  std::thread first([&] {
    EXPECT_EQ(flights.Run("k", leaving, abandonable.work()).status().code(),
              absl::StatusCode::kCancelled);
  });
  EXPECT_TRUE(Eventually([&] { return abandonable.begun == 1; }));
  leaving.Cancel();
  first.join();
  clock.Advance(seconds(29));
  CancelToken back;
  std::thread second([&] {
    EXPECT_EQ(flights.Run("k", back, abandonable.work()).status().code(),
              absl::StatusCode::kCancelled)
        << "in time: it joins what is under way, and leaves again";
  });
  EXPECT_TRUE(Eventually([&] { return flights.waiters() == 1; }));
  clock.Advance(seconds(60));
  EXPECT_EQ(abandonable.given_up, 0) << "somebody waits";
  back.Cancel();
  second.join();
  EXPECT_EQ(abandonable.begun, 1);
  clock.Advance(seconds(31));
  EXPECT_TRUE(Eventually([&] { return abandonable.given_up == 1; }));
  abandonable.release = true;
  CancelToken late;
  EXPECT_EQ(**flights.Run("k", late, abandonable.work()), "built");
  EXPECT_EQ(abandonable.begun, 2);
}

TEST(SingleFlight, WhoWantsItToGoOnKeepsItForTheOthersAsWell) {
  ThreadPool pool(1, 10);
  FakeClock clock;
  Flights flights(pool, {.linger = Nanoseconds(0)}, clock);
  Abandonable abandonable;
  CancelToken leaving;
  std::thread caller(
      [&] { EXPECT_FALSE(flights.Run("k", leaving, abandonable.work(), {.goes_on = true}).ok()); });
  EXPECT_TRUE(Eventually([&] { return abandonable.begun == 1; }));
  leaving.Cancel();
  caller.join();
  clock.Advance(seconds(600));
  CancelToken next;
  std::thread other([&] { EXPECT_EQ(**flights.Run("k", next, abandonable.work()), "built"); });
  EXPECT_TRUE(Eventually([&] { return flights.waiters() == 1; }));
  abandonable.release = true;
  other.join();
  EXPECT_EQ(abandonable.begun, 1);
  EXPECT_EQ(abandonable.given_up, 0);
}

TEST(SingleFlight, ErrorsAreSharedButNotRemembered) {
  ThreadPool pool(1, 10);
  Flights flights(pool);
  CancelToken token;
  EXPECT_EQ(flights.Run("k", token, [](Interest&) -> Flights::Result { return Internal("broken"); })
                .status(),
            Internal("broken"));
  EXPECT_EQ(**flights.Run("k", token, [](Interest&) { return Value("fixed"); }), "fixed");
}

TEST(SingleFlight, ARefusedTaskFailsItsCallersAtOnce) {
  ThreadPool pool(1, 0);  // a queue without room refuses everything
  Flights flights(pool);
  CancelToken token;
  EXPECT_EQ(flights.Run("k", token, [](Interest&) { return Value("x"); }).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(flights.waiters(), 0);
}

TEST(SingleFlight, WhatNobodyWantsAnyMoreKeepsNobodyOut) {
  ThreadPool pool(1, 1);
  Flights flights(pool, {.linger = seconds(0)});
  Abandonable busy;
  CancelToken patient, impatient;
  std::thread working([&] { EXPECT_TRUE(flights.Run("k", patient, busy.work()).ok()); });
  EXPECT_TRUE(Eventually([&] { return busy.begun == 1; }));
  std::thread waiting([&] {
    absl::Status status =
        flights.Run("gone", impatient, [](Interest&) { return Value("never"); }).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  });
  EXPECT_TRUE(Eventually([&] { return pool.queued() == 1; }));
  impatient.Cancel();
  waiting.join();
  EXPECT_EQ(pool.queued(), 1) << "it is in the queue still";
  std::thread next([&] {
    EXPECT_EQ(**flights.Run("next", patient, [](Interest&) { return Value("made"); }), "made");
  });
  EXPECT_TRUE(Eventually([&] { return flights.waiters() == 2; }));
  busy.release = true;
  working.join();
  next.join();
}

TEST(SingleFlight, OneTenantsQueueMakesRoomForAnothers) {
  ThreadPool pool(1, 2);
  Flights flights(pool);
  Abandonable busy;
  CancelToken patient;
  std::vector<std::thread> threads;
  std::atomic<int> ended{0};
  auto start = [&](std::string key, const char* tenant, Flights::Work work, absl::Status* status) {
    threads.emplace_back([&, key = std::move(key), tenant, work = std::move(work), status] {
      *status = flights.Run(key, patient, work, {.owner = {tenant}}).status();
      ++ended;
    });
  };
  auto quick = [](Interest&) { return Value("made"); };
  absl::Status first, second, third, other;
  start("1", "greedy", busy.work(), &first);
  EXPECT_TRUE(Eventually([&] { return busy.begun == 1; }));
  start("2", "greedy", quick, &second);
  EXPECT_TRUE(Eventually([&] { return pool.queued() == 1; }));
  start("3", "greedy", quick, &third);
  EXPECT_TRUE(Eventually([&] { return pool.queued() == 2; }));
  const absl::Status full = flights.Run("4", patient, quick, {.owner = {"greedy"}}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(full) && RetryAfterOf(full).has_value()) << full;
  start("5", "modest", quick, &other);
  EXPECT_TRUE(Eventually([&] { return ended == 1; })) << "the newest of greedy is gone";
  busy.release = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(first.ok() && second.ok() && other.ok());
  EXPECT_TRUE(absl::IsResourceExhausted(third) && RetryAfterOf(third).has_value()) << third;
}

TEST(SingleFlight, WorkThatOthersWantAsWellIsNotPutOut) {
  ThreadPool pool(1, 2);
  Flights flights(pool);
  Abandonable busy;
  CancelToken patient;
  std::vector<std::thread> threads;
  std::atomic<int> made{0};
  auto start = [&](const char* key, const char* tenant, Flights::Work work, bool goes_on = false) {
    threads.emplace_back([&, key, tenant, work = std::move(work), goes_on] {
      made += flights.Run(key, patient, work, {.owner = {tenant}, .goes_on = goes_on}).ok();
    });
  };
  auto quick = [](Interest&) { return Value("made"); };
  start("1", "greedy", busy.work());
  EXPECT_TRUE(Eventually([&] { return busy.begun == 1; }));
  start("shared", "greedy", quick);
  EXPECT_TRUE(Eventually([&] { return pool.queued() == 1; }));
  start("shared", "modest", quick);
  start("kept", "greedy", quick, /*goes_on=*/true);
  EXPECT_TRUE(Eventually([&] { return pool.queued() == 2 && flights.waiters() == 4; }));
  EXPECT_TRUE(absl::IsResourceExhausted(
      flights.Run("other", patient, quick, {.owner = {"other"}}).status()));
  busy.release = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 4);
}

class DroppingExecutor final : public TaskExecutor {
 public:
  absl::Status SubmitFor(const WorkOwner& /*owner*/, Task /*task*/) override {
    return absl::OkStatus();
  }
};

TEST(SingleFlight, ATaskDroppedWithoutRunningDoesNotHangItsCallers) {
  DroppingExecutor executor;
  Flights flights(executor);
  CancelToken token;
  EXPECT_EQ(flights.Run("k", token, [](Interest&) { return Value("x"); }).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(SingleFlight, ManyThreadsManyKeys) {
  ThreadPool pool(4, 1000);
  Flights flights(pool);
  std::atomic<int> executions{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 8; ++t) {
    callers.emplace_back([&, t] {
      CancelToken token;
      for (int i = 0; i < 200; ++i) {
        std::string key = StrCat("k", (i + t) % 7);
        Flights::Result result = flights.Run(key, token, [&executions, key](Interest&) {
          ++executions;
          return Value(key);
        });
        ASSERT_TRUE(result.ok());
        EXPECT_EQ(**result, key);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_LE(executions, 1600);
  EXPECT_EQ(flights.waiters(), 0);
}

}  // namespace
}  // namespace fusion
