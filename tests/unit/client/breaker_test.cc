#include "client/calls/breaker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/support/fake_clock.h"

namespace fusion {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

class BreakerTest : public testing::Test {
 protected:
  void Fail(int times) {
    for (int i = 0; i < times; ++i) {
      ASSERT_TRUE(breaker_.Admit().ok());
      breaker_.Record(Unavailable("host:1 refuses"));
    }
  }
  BreakerPhase phase() const { return breaker_.state().phase; }

  FakeClock clock_;
  double random_ = 0;
  CircuitBreaker breaker_{
      {.failures = 3, .pause = seconds(1), .most_pause = seconds(3), .jitter = 0.5},
      clock_,
      [this] { return random_; }};
};

TEST_F(BreakerTest, OpensAfterFailuresInARow) {
  Fail(2);
  ASSERT_TRUE(breaker_.Admit().ok());
  breaker_.Record(absl::OkStatus());
  Fail(2);
  EXPECT_EQ(phase(), BreakerPhase::kClosed);
  Fail(1);
  EXPECT_EQ(phase(), BreakerPhase::kOpen);
  clock_.Advance(milliseconds(250));
  absl::Status status = breaker_.Admit();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_EQ(Message(status),
            "circuit open since 250 ms, after 3 failures in a row: host:1 refuses");
  const BreakerState state = breaker_.state();
  EXPECT_EQ(state.opened, 1);
  EXPECT_EQ(state.failures, 3);
  EXPECT_EQ(state.open_since, seconds(1'700'000'000));
  EXPECT_EQ(state.probe_in, milliseconds(750));
  EXPECT_EQ(state.last_failure, "host:1 refuses");
}

TEST_F(BreakerTest, OneCallLooksAfterAPause) {
  Fail(3);
  clock_.Advance(seconds(1));
  EXPECT_TRUE(breaker_.Admit().ok());
  EXPECT_EQ(phase(), BreakerPhase::kProbe);
  EXPECT_FALSE(breaker_.Admit().ok());  // only one
  breaker_.Record(absl::OkStatus());
  EXPECT_EQ(phase(), BreakerPhase::kClosed);
  EXPECT_EQ(breaker_.state().open_since, seconds(0));
  EXPECT_TRUE(breaker_.Admit().ok());
}

TEST_F(BreakerTest, PausesGrowToALimitAndBeginAgain) {
  Fail(3);
  for (Nanoseconds pause : {seconds(1), seconds(2), seconds(3), seconds(3)}) {
    EXPECT_EQ(breaker_.state().probe_in, pause);
    clock_.Advance(pause - Nanoseconds(1));
    EXPECT_FALSE(breaker_.Admit().ok());
    clock_.Advance(Nanoseconds(1));
    ASSERT_TRUE(breaker_.Admit().ok());
    breaker_.Record(DeadlineExceeded("no answer"));
  }
  EXPECT_EQ(breaker_.state().opened, 1);  // it never closed
  clock_.Advance(seconds(3));
  ASSERT_TRUE(breaker_.Admit().ok());
  breaker_.Record(absl::OkStatus());
  Fail(3);
  EXPECT_EQ(breaker_.state().probe_in, seconds(1));
  EXPECT_EQ(breaker_.state().opened, 2);
}

TEST_F(BreakerTest, PausesAreLongerAtRandom) {
  random_ = 0.5;
  Fail(3);
  EXPECT_EQ(breaker_.state().probe_in, milliseconds(1250));
}

TEST_F(BreakerTest, AnAnswerThatIsANoIsAnAnswer) {
  Fail(2);
  for (const absl::Status& no : {InvalidArgument("x"), ResourceExhausted("x"), Internal("x"),
                                 NotFound("x"), DataLoss("x")}) {
    ASSERT_TRUE(breaker_.Admit().ok());
    breaker_.Record(no);
    EXPECT_EQ(breaker_.state().failures, 0) << no;
    Fail(2);
    EXPECT_EQ(phase(), BreakerPhase::kClosed);
  }
}

TEST_F(BreakerTest, ACancelledProbeFoundOutNothing) {
  Fail(3);
  clock_.Advance(seconds(1));
  ASSERT_TRUE(breaker_.Admit().ok());
  breaker_.Record(Cancelled("the caller gave up"));
  EXPECT_EQ(phase(), BreakerPhase::kOpen);
  EXPECT_TRUE(breaker_.Admit().ok());  // the next one looks
}

TEST_F(BreakerTest, ALateAnswerCloses) {
  ASSERT_TRUE(breaker_.Admit().ok());
  Fail(3);
  EXPECT_EQ(phase(), BreakerPhase::kOpen);
  breaker_.Record(absl::OkStatus());
  EXPECT_EQ(phase(), BreakerPhase::kClosed);
}

TEST(Breaker, ZeroFailuresNeverOpen) {
  CircuitBreaker breaker({.failures = 0});
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(breaker.Admit().ok());
    breaker.Record(Unavailable("away"));
  }
}

TEST(Breaker, OfManyThreadsOneLooks) {
  FakeClock clock;
  CircuitBreaker breaker({.failures = 1, .pause = seconds(1), .jitter = 0}, clock);
  ASSERT_TRUE(breaker.Admit().ok());
  breaker.Record(Unavailable("away"));
  clock.Advance(seconds(1));
  std::atomic<int> admitted{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] { admitted += breaker.Admit().ok() ? 1 : 0; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(admitted, 1);
}

}  // namespace
}  // namespace fusion
