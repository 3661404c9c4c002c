#include "server/call_census.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/base/retry_after.h"
#include "tests/support/fake_clock.h"

namespace fusion {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class CallCensusTest : public testing::Test {
 protected:
  CallCensusTest() { clock_.Advance(std::chrono::hours(1)); }
  ~CallCensusTest() override {
    for (auto* call : calls_) census_.Release(call);
    EXPECT_EQ(census_.live(), 0);
    EXPECT_EQ(census_.begun(), 0);
    EXPECT_EQ(census_.answer_bytes(), 0) << "of calls that are over";
  }

  grpc::CallbackServerContext& Begin(const std::string& peer = "ipv4:127.0.0.1:1") {
    calls_.push_back(census_.NewCallbackServerContext());
    peer_ = peer;
    begun_ = census_.Add(*calls_.back());
    return *calls_.back();
  }
  void End(const grpc::CallbackServerContext& call) {
    auto it = std::find(calls_.begin(), calls_.end(), &call);
    census_.Release(*it);
    calls_.erase(it);
  }

  FakeClock clock_;
  std::string peer_;  // of the call that begins
  absl::Status begun_;  // what was said of it
  std::vector<int64_t> too_many_, too_much_, too_many_local_;
  CallCensus census_{{.calls = 4, .answer_bytes = 1000},
                     {.too_many = [this](const std::string&, int64_t n) { too_many_.push_back(n); },
                      .too_much = [this](const std::string&, int64_t n) { too_much_.push_back(n); },
                      .too_many_local = [this](int64_t n) { too_many_local_.push_back(n); },
                      .taken_back = [](const std::string&) {}},
                     clock_,
                     [this](const grpc::CallbackServerContext&) { return peer_; }};
  std::vector<grpc::CallbackServerContext*> calls_;
};

TEST_F(CallCensusTest, AboveTheMostThePeerWithMostIsReportedOnceInAWhile) {
  for (int i = 0; i < 4; ++i) Begin();
  EXPECT_THAT(too_many_, IsEmpty());
  Begin();
  Begin();
  EXPECT_THAT(too_many_, ElementsAre(5));
  clock_.Advance(std::chrono::milliseconds(10));
  Begin();
  EXPECT_THAT(too_many_, ElementsAre(5, 7));
}

TEST_F(CallCensusTest, WhatAnswersShareCountsOnceUntilTheLastIsRead) {
  const int plan = 0, other = 0;
  auto& first = Begin();
  auto& second = Begin();
  ASSERT_TRUE(census_.SetAnswer(first, {.own = 10, .shared = {{&plan, 300}}}).ok());
  ASSERT_TRUE(census_.SetAnswer(second, {.own = 20, .shared = {{&plan, 300}, {&other, 5}}}).ok());
  EXPECT_EQ(census_.answer_bytes(), 335);
  End(first);
  EXPECT_EQ(census_.answer_bytes(), 325);
  ASSERT_TRUE(census_.SetAnswer(second, {.own = 7}).ok()) << "the next part of it";
  EXPECT_EQ(census_.answer_bytes(), 7);
}

TEST_F(CallCensusTest, AnswersBeyondTheMostAreRefusedToWhoHasMany) {
  ASSERT_TRUE(census_.SetAnswer(Begin(), {.own = 5000}).ok()) << "alone it may be as large";
  auto& second = Begin();
  absl::Status refused = census_.SetAnswer(second, {.own = 1});
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(too_much_, ElementsAre(5000));
  EXPECT_EQ(census_.answer_bytes(), 5000) << "what is refused keeps nothing";
  End(*calls_.front());
  EXPECT_TRUE(census_.SetAnswer(second, {.own = 1}).ok());
}

TEST_F(CallCensusTest, WhatACacheHasIsGivenAlsoBeyondTheMostUnlessACallAddsMuch) {
  const int first = 0, second = 0;
  ASSERT_TRUE(census_.SetAnswer(Begin(), {.own = 5000}).ok());
  const AnswerMemory plan = {.own = 100, .shared = {{&first, 2000}}, .cached = true};
  EXPECT_TRUE(census_.SetAnswer(Begin(), plan).ok());
  AnswerMemory made = {.own = 100, .shared = {{&second, 2000}}};
  EXPECT_TRUE(absl::IsResourceExhausted(census_.SetAnswer(Begin(), made)));
  AnswerMemory large = {.own = kSmallAnswerBytes + 1, .shared = {{&first, 2000}}, .cached = true};
  EXPECT_TRUE(absl::IsResourceExhausted(census_.SetAnswer(Begin(), large)));
  EXPECT_EQ(census_.answer_bytes(), 7100);
}

TEST_F(CallCensusTest, CallersOfSocketFilesAreRefusedAndThenHungUpOnForTheirCalls) {
  for (const char* name : {"ipv4:10.0.0.1:1", "ipv6:%5B::1%5D:1"}) {
    Begin(name);
    EXPECT_TRUE(begun_.ok());
  }
  Begin("unix:");
  EXPECT_TRUE(begun_.ok()) << "a quarter of four";
  for (const char* name : {"unix:/run/its/own/name", "unix-abstract:name", "unix:"}) {
    Begin(name);
    EXPECT_TRUE(absl::IsResourceExhausted(begun_)) << begun_;
    EXPECT_TRUE(RetryAfterOf(begun_).has_value());
  }
  EXPECT_THAT(too_many_local_, ElementsAre(3)) << "above half, once in a while";
  clock_.Advance(std::chrono::milliseconds(10));
  Begin("unix:");
  EXPECT_THAT(too_many_local_, ElementsAre(3, 5));
  EXPECT_THAT(too_many_, IsEmpty()) << "nobody else pays for them";
  Begin("ipv4:10.0.0.1:1");
  EXPECT_TRUE(begun_.ok());
  EXPECT_THAT(too_many_, ElementsAre(2)) << "those over TCP have more than half now";
}

TEST_F(CallCensusTest, NobodyPaysForAnswersThatCallersOfSocketFilesDoNotRead) {
  const int plan = 0;
  // One plan, sent to many: it is kept once.
  for (int n = 1; n < 4; ++n) {
    auto& call = Begin(StrCat("ipv4:10.0.0.", n, ":1"));
    ASSERT_TRUE(
        census_.SetAnswer(call, {.own = 1, .shared = {{&plan, 400}}, .cached = true}).ok());
  }
  ASSERT_TRUE(census_.SetAnswer(Begin("unix:"), {.own = 590}).ok());
  EXPECT_EQ(census_.answer_bytes(), 993);
  EXPECT_TRUE(absl::IsResourceExhausted(census_.SetAnswer(Begin("unix:"), {.own = 100})));
  EXPECT_TRUE(
      census_
          .SetAnswer(Begin("ipv4:10.0.0.4:1"), {.own = 9, .shared = {{&plan, 400}}, .cached = true})
          .ok());
  EXPECT_THAT(too_much_, IsEmpty());
  clock_.Advance(std::chrono::milliseconds(10));
  ASSERT_TRUE(census_.SetAnswer(Begin("ipv4:10.0.0.5:1"), {.own = 120}).ok());
  ASSERT_TRUE(census_.SetAnswer(Begin("ipv4:10.0.0.6:1"), {.own = 1}).ok());
  EXPECT_THAT(too_much_, ElementsAre(409)) << "those over TCP have more than half now";
}

TEST_F(CallCensusTest, WhoHasLittleIsLetInBesideOneWhoHasMuchUpToHalfAsMuchAgain) {
  ASSERT_TRUE(census_.SetAnswer(Begin("ipv4:10.0.0.1:1"), {.own = 950}).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(census_.SetAnswer(Begin("ipv4:10.0.0.2:1"), {.own = 126})))
      << "more than an eighth";
  EXPECT_THAT(too_much_, ElementsAre(950));
  for (int n = 2; n < 6; ++n) {
    auto& call = Begin(StrCat("ipv4:10.0.0.", n, ":1"));
    ASSERT_TRUE(census_.SetAnswer(call, {.own = 125}).ok()) << n;
  }
  EXPECT_TRUE(absl::IsResourceExhausted(census_.SetAnswer(Begin("ipv4:10.0.0.6:1"), {.own = 51})))
      << "1450 and 51";
  EXPECT_TRUE(census_.SetAnswer(Begin("ipv4:10.0.0.6:1"), {.own = 50}).ok());
}

TEST_F(CallCensusTest, WhatIsKeptAnywayIsNeverTooMuch) {
  const int plan = 0;
  ASSERT_TRUE(census_.SetAnswer(Begin(), {.own = 0, .shared = {{&plan, 2000}}}).ok());
  EXPECT_TRUE(census_.SetAnswer(Begin(), {.own = 0, .shared = {{&plan, 2000}}}).ok());
  EXPECT_EQ(census_.answer_bytes(), 2000);
}

}  // namespace
}  // namespace fusion
