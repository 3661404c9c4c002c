#include "server/call_census.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/support/fake_clock.h"

namespace fusion {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Calls without a network are all of one peer, "".
class CallCensusTest : public testing::Test {
 protected:
  CallCensusTest() { clock_.Advance(std::chrono::hours(1)); }
  ~CallCensusTest() override {
    for (auto* call : calls_) census_.Release(call);
    EXPECT_EQ(census_.live(), 0);
    EXPECT_EQ(census_.begun(), 0);
    EXPECT_EQ(census_.answer_bytes(), 0) << "of calls that are over";
  }

  grpc::CallbackServerContext& Begin() {
    calls_.push_back(census_.NewCallbackServerContext());
    census_.Add(*calls_.back());
    return *calls_.back();
  }
  void End(const grpc::CallbackServerContext& call) {
    auto it = std::find(calls_.begin(), calls_.end(), &call);
    census_.Release(*it);
    calls_.erase(it);
  }

  FakeClock clock_;
  std::vector<int64_t> too_many_, too_much_;
  CallCensus census_{{.calls = 4, .answer_bytes = 1000},
                     {.too_many = [this](const std::string&, int64_t n) { too_many_.push_back(n); },
                      .too_much = [this](const std::string&, int64_t n) { too_much_.push_back(n); },
                      .taken_back = [](const std::string&) {}},
                     clock_};
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

TEST_F(CallCensusTest, WhatIsKeptAnywayIsNeverTooMuch) {
  const int plan = 0;
  ASSERT_TRUE(census_.SetAnswer(Begin(), {.own = 0, .shared = {{&plan, 2000}}}).ok());
  EXPECT_TRUE(census_.SetAnswer(Begin(), {.own = 0, .shared = {{&plan, 2000}}}).ok());
  EXPECT_EQ(census_.answer_bytes(), 2000);
}

}  // namespace
}  // namespace fusion
