#include "client/calls/retry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "core/wire/error_details.h"
#include "tests/support/fake_clock.h"

namespace fusion {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;

constexpr RetryPolicy kPolicy = {.attempts = 5,
                                 .first_pause = milliseconds(100),
                                 .growth = 2,
                                 .most_pause = milliseconds(300),
                                 .jitter = 0.5};

TEST(RetryPause, GrowsToALimit) {
  std::vector<Nanoseconds> pauses;
  for (int made = 1; made < 5; ++made) {
    pauses.push_back(*RetryPause(kPolicy, made, Unavailable("x"), 0));
  }
  EXPECT_THAT(pauses, ElementsAre(milliseconds(100), milliseconds(200), milliseconds(300),
                                  milliseconds(300)));
  EXPECT_EQ(RetryPause(kPolicy, 5, Unavailable("x"), 0), std::nullopt);
  EXPECT_EQ(RetryPause(kPolicy, 1, Unavailable("x"), 0.5), milliseconds(75));
}

TEST(RetryPause, ExhaustedResourcesWaitAsAskedAndNeverUnasked) {
  absl::Status full = ResourceExhausted("the queue is full");
  EXPECT_EQ(RetryPause(kPolicy, 1, full, 0), std::nullopt);
  full = WithRetryAfter(full, seconds(7));
  EXPECT_EQ(RetryPause(kPolicy, 1, full, 0), seconds(7));
  EXPECT_EQ(RetryPause(kPolicy, 1, full, 0.5), seconds(7) + milliseconds(50));
  EXPECT_EQ(RetryPause(kPolicy, 5, full, 0), std::nullopt);
}

TEST(RetryPause, IsAtLeastWhatTheServiceAsksFor) {
  EXPECT_EQ(RetryPause(kPolicy, 1, WithRetryAfter(Unavailable("x"), seconds(3)), 0), seconds(3));
  EXPECT_EQ(RetryPause(kPolicy, 1, WithRetryAfter(Unavailable("x"), Nanoseconds(1)), 0),
            milliseconds(100));
}

TEST(RetryPause, WhatWouldBeAnsweredTheSameIsNotAskedAgain) {
  for (const absl::Status& no :
       {InvalidArgument("x"), Unimplemented("x"), NotFound("x"), FailedPrecondition("x"),
        Internal("x"), Cancelled("x"), absl::PermissionDeniedError("x"),
        absl::UnauthenticatedError("x"), WithRetryAfter(InvalidArgument("x"), seconds(1))}) {
    EXPECT_EQ(RetryPause(kPolicy, 1, no, 0), std::nullopt) << no;
  }
}

class WithRetriesTest : public testing::Test {
 protected:
  absl::Status Call(Nanoseconds until, const std::function<absl::Status()>& attempt) {
    return WithRetries(
        kPolicy,
        {.clock = clock_,
         .until = until,
         .wait =
             [this](Nanoseconds pause) {
               waits_.push_back(pause);
               clock_.Advance(pause);
               return goes_on_;
             },
         .random = [] { return 0.0; }},
        [&] {
          ++attempts_;
          return attempt();
        },
        [this] { ++retries_; });
  }
  FakeClock clock_;
  std::vector<Nanoseconds> waits_;
  bool goes_on_ = true;
  int attempts_ = 0;
  int retries_ = 0;
};

TEST_F(WithRetriesTest, EndsWithTheFirstAnswer) {
  absl::Status status =
      Call(seconds(60), [this] { return attempts_ < 3 ? Unavailable("later") : absl::OkStatus(); });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(attempts_, 3);
  EXPECT_EQ(retries_, 2);
  EXPECT_THAT(waits_, ElementsAre(milliseconds(100), milliseconds(200)));
}

TEST_F(WithRetriesTest, NeverBeginsAfterTheDeadline) {
  absl::Status status = Call(milliseconds(250), [] { return Unavailable("later"); });
  EXPECT_EQ(Message(status), "later");
  EXPECT_EQ(attempts_, 2);
  EXPECT_LT(clock_.Now(), milliseconds(250));
}

TEST_F(WithRetriesTest, DoesNotWaitForADelayBeyondTheDeadline) {
  absl::Status status =
      Call(seconds(5), [] { return WithRetryAfter(ResourceExhausted("full"), seconds(6)); });
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(waits_, testing::IsEmpty());
}

TEST_F(WithRetriesTest, ACallerThatGivesUpEndsThePause) {
  goes_on_ = false;
  absl::Status status = Call(seconds(60), [] { return Unavailable("later"); });
  EXPECT_TRUE(absl::IsCancelled(status));
  EXPECT_EQ(attempts_, 1);
}

}  // namespace
}  // namespace fusion
