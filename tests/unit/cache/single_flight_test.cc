#include "core/cache/single_flight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <future>
#include <thread>

#include "core/base/threads/thread_pool.h"
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
  ThreadPool pool("test", 4, 100);
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
  ThreadPool pool("test", 2, 10);
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
  ThreadPool pool("test", 1, 10);
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
  ThreadPool pool("test", 1, 10);
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
  ThreadPool pool("test", 2, 10);
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
  ThreadPool pool("test", 1, 10);
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
  ThreadPool pool("test", 1, 10);
  Flights flights(pool);
  CancelToken token;
  EXPECT_EQ(flights.Run("k", token, [](Interest&) -> Flights::Result { return Internal("broken"); })
                .status(),
            Internal("broken"));
  EXPECT_EQ(**flights.Run("k", token, [](Interest&) { return Value("fixed"); }), "fixed");
}

TEST(SingleFlight, ARefusedTaskFailsItsCallersAtOnce) {
  ThreadPool pool("test", 1, 0);  // a queue without room refuses everything
  Flights flights(pool);
  CancelToken token;
  EXPECT_EQ(flights.Run("k", token, [](Interest&) { return Value("x"); }).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(flights.waiters(), 0);
}

TEST(SingleFlight, WhatNobodyWantsAnyMoreKeepsNobodyOut) {
  ThreadPool pool("test", 1, 1);
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

// One thread, which is busy until it is told, and two places in front of it.
class SingleFlightQueue : public testing::Test {
 protected:
  SingleFlightQueue() : pool_("test", 1, 2), flights_(pool_) {
    Start("busy", "greedy", busy_.work());
    EXPECT_TRUE(Eventually([&] { return busy_.begun == 1; }));
  }

  absl::Status Run(const std::string& key, const std::string& tenant, const Flights::Work& work,
                   bool goes_on = false) {
    return flights_.Run(key, patient_, work, {.owner = {tenant}, .goes_on = goes_on}).status();
  }
  // On a thread of its own. How it ends is there after End().
  const absl::Status& Start(const std::string& key, const std::string& tenant,
                            const Flights::Work& work, bool goes_on = false) {
    absl::Status& status = ends_.emplace_back();
    threads_.emplace_back([this, key, tenant, work, goes_on, &status] {
      status = Run(key, tenant, work, goes_on);
      ++ended_;
    });
    return status;
  }
  static Flights::Result Quick(Interest& /*interest*/) { return Value("made"); }
  bool Queued(size_t tasks) {
    return Eventually([&] { return pool_.queued() == tasks; });
  }
  void End() {
    busy_.release = true;
    for (std::thread& thread : threads_) thread.join();
  }

  ThreadPool pool_;
  Flights flights_;
  Abandonable busy_;
  CancelToken patient_;
  std::vector<std::thread> threads_;
  std::deque<absl::Status> ends_;
  std::atomic<int> ended_{0};
};

TEST_F(SingleFlightQueue, OfOneTenantMakesRoomForAnothers) {
  const absl::Status& second = Start("second", "greedy", &Quick);
  EXPECT_TRUE(Queued(1));
  const absl::Status& third = Start("third", "greedy", &Quick);
  EXPECT_TRUE(Queued(2));
  const absl::Status full = Run("fourth", "greedy", &Quick);
  EXPECT_TRUE(absl::IsResourceExhausted(full) && RetryAfterOf(full).has_value()) << full;
  const absl::Status& other = Start("other", "modest", &Quick);
  EXPECT_TRUE(Eventually([&] { return ended_ == 1; })) << "the newest of greedy is gone";
  End();
  EXPECT_TRUE(ends_[0].ok() && second.ok() && other.ok());
  EXPECT_TRUE(absl::IsResourceExhausted(third) && RetryAfterOf(third).has_value()) << third;
}

TEST_F(SingleFlightQueue, KeepsWorkThatAnotherTenantWantsAsWell) {
  Start("shared", "greedy", &Quick);
  EXPECT_TRUE(Queued(1));
  Start("shared", "modest", &Quick);
  Start("own", "greedy", &Quick);
  EXPECT_TRUE(Queued(2));
  const absl::Status& again = Start("own", "greedy", &Quick, /*goes_on=*/true);
  EXPECT_TRUE(Eventually([&] { return flights_.waiters() == 5; }));
  Start("other", "other", &Quick);
  EXPECT_TRUE(Eventually([&] { return ended_ == 2; })) << "wanted twice by one, and to go on";
  EXPECT_TRUE(absl::IsResourceExhausted(Run("third", "third", &Quick))) << "one each";
  End();
  EXPECT_TRUE(absl::IsResourceExhausted(again));
  EXPECT_EQ(std::count(ends_.begin(), ends_.end(), absl::OkStatus()), 4);
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
  ThreadPool pool("test", 4, 1000);
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
