#include "server/admission/call_tracker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/base/threads/retry_after.h"
#include "tests/support/fake_clock.h"

namespace fusion {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class CallTrackerTest : public testing::Test {
 protected:
  CallTrackerTest() { clock_.Advance(std::chrono::hours(1)); }
  ~CallTrackerTest() override {
    for (auto* call : calls_) call_tracker_.Release(call);
    EXPECT_EQ(call_tracker_.live(), 0);
    EXPECT_EQ(call_tracker_.begun(), 0);
    EXPECT_EQ(call_tracker_.answer_bytes(), 0) << "of calls that are over";
  }

  grpc::CallbackServerContext& Begin(const std::string& peer = "ipv4:127.0.0.1:1") {
    calls_.push_back(call_tracker_.NewCallbackServerContext());
    peer_ = peer;
    call_tracker_.Add(*calls_.back());
    return *calls_.back();
  }
  void End(const grpc::CallbackServerContext& call) {
    auto it = std::find(calls_.begin(), calls_.end(), &call);
    call_tracker_.Release(*it);
    calls_.erase(it);
  }

  FakeClock clock_;
  std::string peer_;  // of the call that begins
  std::vector<int64_t> too_many_, too_much_;
  std::string reported_;  // who, last
  CallTracker call_tracker_{{.calls = 4, .answer_bytes = 1000},
                            {.too_many =
                                 [this](const std::string& peer, int64_t n) {
                                   reported_ = peer;
                                   too_many_.push_back(n);
                                 },
                             .too_much =
                                 [this](const std::string& peer, int64_t n) {
                                   reported_ = peer;
                                   too_much_.push_back(n);
                                 },
                             .taken_back = [](const std::string&) {}},
                            clock_,
                            [this](const grpc::CallbackServerContext&) { return peer_; }};
  std::vector<grpc::CallbackServerContext*> calls_;
};

TEST_F(CallTrackerTest, AboveTheMostThePeerWithMostIsReportedOnceInAWhile) {
  for (int i = 0; i < 4; ++i) Begin();
  EXPECT_THAT(too_many_, IsEmpty());
  Begin();
  Begin();
  EXPECT_THAT(too_many_, ElementsAre(5));
  clock_.Advance(std::chrono::milliseconds(10));
  Begin();
  EXPECT_THAT(too_many_, ElementsAre(5, 7));
}

TEST_F(CallTrackerTest, WhatAnswersShareCountsOnceUntilTheLastIsRead) {
  const int plan = 0, other = 0;
  auto& first = Begin();
  auto& second = Begin();
  ASSERT_TRUE(call_tracker_.SetAnswer(first, {.own = 10, .shared = {{&plan, 300}}}).ok());
  ASSERT_TRUE(
      call_tracker_.SetAnswer(second, {.own = 20, .shared = {{&plan, 300}, {&other, 5}}}).ok());
  EXPECT_EQ(call_tracker_.answer_bytes(), 335);
  End(first);
  EXPECT_EQ(call_tracker_.answer_bytes(), 325);
  ASSERT_TRUE(call_tracker_.SetAnswer(second, {.own = 7}).ok()) << "the next part of it";
  EXPECT_EQ(call_tracker_.answer_bytes(), 7);
}

TEST_F(CallTrackerTest, AnswersBeyondTheMostAreRefusedToWhoHasMany) {
  ASSERT_TRUE(call_tracker_.SetAnswer(Begin(), {.own = 5000}).ok()) << "alone it may be as large";
  auto& second = Begin();
  absl::Status refused = call_tracker_.SetAnswer(second, {.own = 1});
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(too_much_, ElementsAre(5000));
  EXPECT_EQ(call_tracker_.answer_bytes(), 5000) << "what is refused keeps nothing";
  End(*calls_.front());
  EXPECT_TRUE(call_tracker_.SetAnswer(second, {.own = 1}).ok());
}

TEST_F(CallTrackerTest, WhatACacheHasIsGivenAlsoBeyondTheMostUnlessACallAddsMuch) {
  const int first = 0, second = 0;
  ASSERT_TRUE(call_tracker_.SetAnswer(Begin(), {.own = 5000}).ok());
  const AnswerMemory plan = {.own = 100, .shared = {{&first, 2000}}, .cached = true};
  EXPECT_TRUE(call_tracker_.SetAnswer(Begin(), plan).ok());
  AnswerMemory made = {.own = 100, .shared = {{&second, 2000}}};
  EXPECT_TRUE(absl::IsResourceExhausted(call_tracker_.SetAnswer(Begin(), made)));
  AnswerMemory large = {.own = kSmallAnswerBytes + 1, .shared = {{&first, 2000}}, .cached = true};
  EXPECT_TRUE(absl::IsResourceExhausted(call_tracker_.SetAnswer(Begin(), large)));
  EXPECT_EQ(call_tracker_.answer_bytes(), 7100);
}

TEST_F(CallTrackerTest, ConnectionsOfASocketFileAreToldApartAsThoseOfTcpAre) {
  Begin("ipv4:10.0.0.1:1");
  Begin("unix:uid=1000,pid=2,connection=1");
  for (int i = 0; i < 3; ++i) Begin("unix:uid=1000,pid=3,connection=2");
  EXPECT_THAT(too_many_, ElementsAre(3)) << "the calls of one connection, not of all";
  EXPECT_EQ(reported_, "unix:uid=1000,pid=3,connection=2");
  ASSERT_TRUE(call_tracker_.SetAnswer(*calls_.front(), {.own = 500}).ok());
  ASSERT_TRUE(call_tracker_.SetAnswer(*calls_.back(), {.own = 499}).ok());
  EXPECT_TRUE(call_tracker_.SetAnswer(*calls_[1], {.own = 100}).ok()) << "who has little is let in";
  EXPECT_THAT(too_much_, ElementsAre(500));
  EXPECT_EQ(reported_, "ipv4:10.0.0.1:1");
}

TEST_F(CallTrackerTest, WhoHasLittleIsLetInBesideOneWhoHasMuchUpToHalfAsMuchAgain) {
  ASSERT_TRUE(call_tracker_.SetAnswer(Begin("ipv4:10.0.0.1:1"), {.own = 950}).ok());
  EXPECT_TRUE(
      absl::IsResourceExhausted(call_tracker_.SetAnswer(Begin("ipv4:10.0.0.2:1"), {.own = 126})))
      << "more than an eighth";
  EXPECT_THAT(too_much_, ElementsAre(950));
  for (int n = 2; n < 6; ++n) {
    auto& call = Begin(StrCat("ipv4:10.0.0.", n, ":1"));
    ASSERT_TRUE(call_tracker_.SetAnswer(call, {.own = 125}).ok()) << n;
  }
  EXPECT_TRUE(
      absl::IsResourceExhausted(call_tracker_.SetAnswer(Begin("ipv4:10.0.0.6:1"), {.own = 51})))
      << "1450 and 51";
  EXPECT_TRUE(call_tracker_.SetAnswer(Begin("ipv4:10.0.0.6:1"), {.own = 50}).ok());
}

TEST_F(CallTrackerTest, WhatIsKeptAnywayIsNeverTooMuch) {
  const int plan = 0;
  ASSERT_TRUE(call_tracker_.SetAnswer(Begin(), {.own = 0, .shared = {{&plan, 2000}}}).ok());
  EXPECT_TRUE(call_tracker_.SetAnswer(Begin(), {.own = 0, .shared = {{&plan, 2000}}}).ok());
  EXPECT_EQ(call_tracker_.answer_bytes(), 2000);
}

}  // namespace
}  // namespace fusion
