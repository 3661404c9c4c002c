#include "server/admission/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <optional>
#include <thread>

#include "core/wire/error_details.h"
#include "tests/support/fake_clock.h"

namespace fusion {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

// A call that wants a thread; of a caller with time, of the tenant of those who say nothing.
absl::StatusOr<Admission::Pass> Enter(Admission& admission, int64_t bytes,
                                      const WorkOwner& owner = {"default"},
                                      Nanoseconds time_left = std::chrono::hours(1),
                                      RpcMethod method = RpcMethod::kPlanFusion) {
  ASSIGN_OR_RETURN(Admission::Pass pass, admission.Enter(owner, bytes, method));
  RETURN_IF_ERROR(admission.TakeTurn(&pass, time_left));
  return pass;
}

void NotDisplaced(const absl::Status& /*why*/) { FAIL() << "nobody's place goes to another"; }

TEST(AdmissionTest, LetsInAsManyAsThreadsAndQueueHold) {
  Admission admission({.threads = 1, .queue = 2, .inflight_bytes = 1000});
  std::vector<Admission::Pass> passes;
  for (int i = 0; i < 3; ++i) {
    absl::StatusOr<Admission::Pass> pass = Enter(admission, 10);
    ASSERT_TRUE(pass.ok()) << pass.status();
    passes.push_back(*std::move(pass));
  }
  EXPECT_EQ(admission.calls(), 3);
  EXPECT_EQ(admission.bytes(), 30);
  absl::Status refused = Enter(admission, 10).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_THAT(std::string(Message(refused)), HasSubstr("3 calls are under way"));
  EXPECT_EQ(admission.refused(Refused::kCalls), 1);
  EXPECT_GE(*RetryAfterOf(refused), milliseconds(50)) << "and it is said when to try again";
  passes.pop_back();
  EXPECT_TRUE(Enter(admission, 10).ok()) << "there is room again";
  EXPECT_EQ(admission.calls(), 2) << "and the pass was given back at once";
}

TEST(AdmissionTest, WhatTakesNoThreadIsLetInWhileAllAreTaken) {
  Admission admission({.threads = 1, .queue = 0});
  absl::StatusOr<Admission::Pass> working = Enter(admission, 10);
  ASSERT_TRUE(working.ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Enter(admission, 10).status()));
  absl::StatusOr<Admission::Pass> at_hand =
      admission.Enter({"default"}, 10, RpcMethod::kPlanFusion);
  EXPECT_TRUE(at_hand.ok()) << at_hand.status();
  EXPECT_EQ(admission.calls(), 2);
}

TEST(AdmissionTest, WhoseWorkIsDoneKeepsNobodyOut) {
  Admission admission({.threads = 1, .queue = 0});
  absl::StatusOr<Admission::Pass> unread = Enter(admission, 10);
  ASSERT_TRUE(unread.ok());
  EXPECT_FALSE(Enter(admission, 10).ok());
  admission.EndTurn(&*unread);
  admission.EndTurn(&*unread);
  EXPECT_TRUE(Enter(admission, 10).ok());
  EXPECT_EQ(admission.calls(), 1) << "it is under way still";
}

TEST(AdmissionTest, BoundsBytesButNotASingleRequest) {
  Admission admission({.threads = 4, .queue = 4, .inflight_bytes = 100});
  absl::StatusOr<Admission::Pass> large = Enter(admission, 500);
  ASSERT_TRUE(large.ok()) << "alone it may exceed the limit";
  EXPECT_TRUE(absl::IsResourceExhausted(Enter(admission, 1).status()));
  EXPECT_EQ(admission.refused(Refused::kBytes), 1);
  EXPECT_EQ(admission.calls(), 1);
  EXPECT_EQ(admission.bytes(), 500);
}

TEST(AdmissionTest, WhatACallTakesInLaterCounts) {
  Admission admission({.threads = 4, .queue = 4, .inflight_bytes = 100});
  absl::StatusOr<Admission::Pass> first = Enter(admission, 0);
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(admission.Hold(&*first, 500).ok()) << "alone it may exceed the limit";
  EXPECT_EQ(admission.bytes(), 500);
  EXPECT_TRUE(admission.Hold(&*first, 60).ok());
  absl::StatusOr<Admission::Pass> second = Enter(admission, 0, {"other"});
  ASSERT_TRUE(second.ok());
  absl::Status refused = admission.Hold(&*second, 41);
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_EQ(admission.refused(Refused::kBytes), 1);
  EXPECT_EQ(admission.bytes(), 60) << "it holds what it did";
  EXPECT_TRUE(admission.Hold(&*second, 40).ok());
  EXPECT_EQ(admission.tenant_bytes().at("other"), 40);
  { const Admission::Pass gone = *std::move(first); }
  EXPECT_EQ(admission.bytes(), 40);
}

TEST(AdmissionTest, ClosedItLetsNobodyInAndKeepsWhoIsInside) {
  Admission admission({.threads = 1, .queue = 0});
  std::optional<absl::StatusOr<Admission::Pass>> pass = Enter(admission, 1);
  ASSERT_TRUE(pass->ok());
  admission.Close();
  Admission other({.threads = 1, .queue = 8});
  other.Close();
  EXPECT_TRUE(absl::IsUnavailable(Enter(other, 1).status()));
  EXPECT_EQ(other.calls(), 0);
  std::promise<void> ran;
  EXPECT_TRUE(admission
                  .Run(
                      **pass, [&] { ran.set_value(); }, NotDisplaced)
                  .ok());
  ran.get_future().wait();
  pass.reset();
  EXPECT_EQ(admission.calls(), 0);
}

TEST(AdmissionTest, WhoIsInsideAlwaysFindsRoomInTheQueue) {
  Admission admission({.threads = 1, .queue = 3});
  std::vector<Admission::Pass> passes;
  std::promise<void> open;
  std::shared_future<void> gate = open.get_future().share();
  std::atomic<int> ran{0};
  for (int i = 0; i < 4; ++i) {
    passes.push_back(Enter(admission, 1).value());
    ASSERT_TRUE(admission
                    .Run(
                        passes.back(),
                        [&, gate] {
                          gate.wait();
                          ++ran;
                        },
                        NotDisplaced)
                    .ok());
  }
  open.set_value();
  admission.Stop();
  EXPECT_EQ(ran, 4) << "what waits is run";
}

TEST(AdmissionTest, OfASlowRateItIsSaidHowSlowItIs) {
  FakeClock clock;
  TenantLimits limits;
  ASSERT_TRUE(ParseTenantLimit("acme:rate=0.02,burst=1", &limits).ok());
  Admission admission({.threads = 1, .queue = 100, .tenants = limits}, clock);
  EXPECT_TRUE(Enter(admission, 1, {"acme"}).ok());
  clock.Advance(seconds(10));
  EXPECT_EQ(RetryAfterOf(Enter(admission, 1, {"acme"}).status()), seconds(40));
}

TEST(AdmissionTest, ATenantHasNoMoreCallsThanItsRateAllows) {
  FakeClock clock;
  TenantLimits limits;
  ASSERT_TRUE(ParseTenantLimit("acme:rate=10,burst=2", &limits).ok());
  Admission admission({.threads = 1, .queue = 100, .tenants = limits}, clock);
  EXPECT_TRUE(Enter(admission, 1, {"acme"}).ok());
  EXPECT_TRUE(Enter(admission, 1, {"acme"}).ok());
  absl::Status refused = Enter(admission, 1, {"acme"}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << "never Unavailable: " << refused;
  EXPECT_EQ(RetryAfterOf(refused), milliseconds(100)) << "then there is a token again";
  EXPECT_THAT(std::string(Message(refused)),
              HasSubstr("\"acme\" makes more than 10 calls a second"));
  EXPECT_TRUE(Enter(admission, 1, {"other"}).ok()) << "that is no matter of others";
  clock.Advance(milliseconds(100));
  EXPECT_TRUE(Enter(admission, 1, {"acme"}).ok());
  EXPECT_FALSE(Enter(admission, 1, {"acme"}).ok());
  clock.Advance(seconds(60));
  EXPECT_TRUE(Enter(admission, 1, {"acme"}).ok());
  EXPECT_TRUE(Enter(admission, 1, {"acme"}).ok());
  EXPECT_FALSE(Enter(admission, 1, {"acme"}).ok()) << "a bucket does not overflow";
  EXPECT_EQ(admission.refused(Refused::kRate), 3);
}

// One thread that is busy until it is told.
class BusyAdmission {
 public:
  explicit BusyAdmission(const AdmissionLimits& limits) : admission(limits) {
    passes.push_back(Enter(admission, 1, {"first"}).value());
    EXPECT_TRUE(admission
                    .Run(
                        passes.back(),
                        [this] {
                          begun.set_value();
                          gate.get_future().wait();
                        },
                        NotDisplaced)
                    .ok());
    begun.get_future().wait();
  }
  absl::Status Add(const WorkOwner& owner) {
    absl::StatusOr<Admission::Pass> pass = Enter(admission, 1, owner);
    RETURN_IF_ERROR(pass.status());
    passes.push_back(*std::move(pass));
    return admission.Run(
        passes.back(), [this, owner] { ran.push_back(owner.tenant); },
        [this, owner](const absl::Status& why) {
          displaced.push_back(owner.tenant);
          EXPECT_TRUE(absl::IsResourceExhausted(why) && RetryAfterOf(why).has_value()) << why;
        });
  }
  void Open() {
    gate.set_value();
    admission.Stop();
  }

  std::promise<void> begun;
  std::promise<void> gate;
  Admission admission;
  std::vector<Admission::Pass> passes;
  std::vector<std::string> ran;
  std::vector<std::string> displaced;
};

TEST(AdmissionTest, AFullQueueMakesRoomForWhoHasLessInIt) {
  BusyAdmission busy({.threads = 1, .queue = 4});
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(busy.Add({"greedy"}).ok());
  EXPECT_FALSE(busy.Add({"greedy"}).ok()) << "not for more of the same";
  EXPECT_TRUE(busy.Add({"modest"}).ok());
  EXPECT_THAT(busy.displaced, testing::ElementsAre("greedy"));
  EXPECT_EQ(busy.admission.refused(Refused::kDisplaced), 1);
  busy.Open();
  EXPECT_THAT(busy.ran, testing::ElementsAre("greedy", "modest", "greedy", "greedy"))
      << "and they take turns";
}

TEST(AdmissionTest, CallsThatNobodyWaitsForKeepNobodyOut) {
  BusyAdmission busy({.threads = 1, .queue = 1});
  Admission::Pass gone = Enter(busy.admission, 1).value();
  std::atomic<bool> over{false};
  absl::Status told;
  ASSERT_TRUE(busy.admission
                  .Run(
                      gone, [] { FAIL() << "nobody waits for it"; },
                      [&](const absl::Status& why) {
                        told = why;
                        busy.admission.EndTurn(&gone);
                      },
                      [&] { return over ? absl::CancelledError("gone") : absl::OkStatus(); })
                  .ok());
  EXPECT_FALSE(busy.Add({"default"}).ok()) << "it has its tenant's place still";
  over = true;
  EXPECT_TRUE(busy.Add({"default"}).ok());
  EXPECT_TRUE(absl::IsCancelled(told)) << told;
  EXPECT_EQ(busy.admission.refused(Refused::kDisplaced), 0);
  busy.Open();
}

TEST(AdmissionTest, BackgroundCallsComeLastAndGoFirst) {
  BusyAdmission busy({.threads = 1, .queue = 2});
  ASSERT_TRUE(busy.Add({"a", /*background=*/true}).ok());
  ASSERT_TRUE(busy.Add({"b", /*background=*/true}).ok());
  EXPECT_TRUE(busy.Add({"c"}).ok());
  EXPECT_EQ(busy.displaced.size(), 1);
  EXPECT_FALSE(busy.Add({"d", /*background=*/true}).ok());
  busy.Open();
  ASSERT_EQ(busy.ran.size(), 2);
  EXPECT_EQ(busy.ran[0], "c");
}

TEST(AdmissionTest, TheWaitOfATenantIsNotThatOfTheLongestQueue) {
  FakeClock clock;
  TenantLimits limits;
  ASSERT_TRUE(ParseTenantLimit("greedy:rate=1,burst=100", &limits).ok());
  Admission admission({.threads = 1, .queue = 1000, .tenants = limits}, clock);
  std::promise<void> took;
  Admission::Pass first = Enter(admission, 1, {"first"}).value();
  ASSERT_TRUE(admission
                  .Run(
                      first, [&] { clock.Advance(seconds(2)); }, NotDisplaced)
                  .ok());
  Admission::Pass second = Enter(admission, 1, {"first"}).value();
  std::promise<void> open;
  std::shared_future<void> gate = open.get_future().share();
  ASSERT_TRUE(admission
                  .Run(
                      second,
                      [&] {
                        took.set_value();
                        gate.wait();
                      },
                      NotDisplaced)
                  .ok());
  took.get_future().wait();  // so the mean is known: two seconds
  std::vector<Admission::Pass> passes;
  for (int i = 0; i < 10; ++i) {
    passes.push_back(Enter(admission, 1, {"greedy"}).value());
    ASSERT_TRUE(admission
                    .Run(
                        passes.back(), [] {}, NotDisplaced)
                    .ok());
  }
  const int64_t tokens = 100 - 10;
  const absl::Status refused = Enter(admission, 1, {"greedy"}, seconds(30)).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(Message(refused)), HasSubstr("its deadline is in 30000 ms"));
  EXPECT_EQ(RetryAfterOf(refused), seconds(10)) << "the most that anybody is told to wait";
  EXPECT_EQ(admission.refused(Refused::kDeadline), 1);
  EXPECT_TRUE(Enter(admission, 1, {"modest"}, seconds(30)).ok())
      << "whose call comes after one of greedy's";
  for (int64_t i = 0; i < tokens; ++i) EXPECT_TRUE(Enter(admission, 1, {"greedy"}).ok()) << i;
  EXPECT_EQ(admission.refused(Refused::kRate), 0) << "a call refused for want of time costs none";
  EXPECT_FALSE(Enter(admission, 1, {"greedy"}).ok());
  EXPECT_EQ(admission.refused(Refused::kRate), 1);
  open.set_value();
  admission.Stop();
}

TEST(AdmissionTest, FewerAheadThanThreadsIsAWaitToo) {
  FakeClock clock;
  Admission admission({.threads = 4, .queue = 100}, clock);
  std::promise<void> known, open;
  std::shared_future<void> gate = open.get_future().share();
  Admission::Pass first = Enter(admission, 1).value();
  ASSERT_TRUE(admission
                  .Run(
                      first, [&] { clock.Advance(seconds(1)); }, NotDisplaced)
                  .ok());
  std::atomic<int> at_work{0};
  std::vector<Admission::Pass> passes;
  auto add = [&] {
    passes.push_back(Enter(admission, 1).value());
    ASSERT_TRUE(admission
                    .Run(
                        passes.back(),
                        [&] {
                          if (++at_work == 4) known.set_value();
                          gate.wait();
                        },
                        NotDisplaced)
                    .ok());
  };
  for (int i = 0; i < 4; ++i) add();
  known.get_future().wait();  // also how long the first took, by one of the four threads
  EXPECT_TRUE(Enter(admission, 1, {"default"}, seconds(1)).ok()) << "nothing waits";
  add();
  const absl::Status refused = Enter(admission, 1, {"default"}, seconds(2)).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(Message(refused)), HasSubstr("would take some 1250 ms"));
  EXPECT_TRUE(Enter(admission, 1, {"default"}, seconds(3)).ok());
  EXPECT_TRUE(Enter(admission, 1, {"default"}, seconds(1), RpcMethod::kGetKernels).ok())
      << "of which nothing is known but the wait";
  open.set_value();
  admission.Stop();
}

TEST(AdmissionTest, WhatIdleThreadsAreAboutToTakeIsNoWait) {
  FakeClock clock;
  Admission admission({.threads = 2, .queue = 100}, clock);
  int let_in = 0;
  for (int round = 0; round < 300; ++round) {
    std::promise<void> done;
    Admission::Pass first = Enter(admission, 1).value();
    ASSERT_TRUE(admission
                    .Run(
                        first,
                        [&] {
                          clock.Advance(seconds(1));
                          done.set_value();
                        },
                        NotDisplaced)
                    .ok());
    // A thread has nothing to do, whether or not the task was taken yet; but for those rounds in
    // which one is not back yet and the other has not begun.
    let_in += Enter(admission, 1, {"default"}, milliseconds(1)).ok();
    done.get_future().wait();
  }
  EXPECT_GT(let_in, 30) << "of 300, on an idle machine nearly all; none where what waits counts";
  admission.Stop();
}

// Compiles of sixteen seconds hold the threads, and a call with thirty is let in all the same.
TEST(AdmissionTest, WhatOthersWorkOnKeepsThreadsButIsNoReasonToRefuse) {
  for (const bool others : {true, false}) {
    FakeClock clock;
    Admission admission({.threads = 4, .queue = 100}, clock);
    std::promise<void> known, open;
    std::shared_future<void> gate = open.get_future().share();
    std::vector<Admission::Pass> passes;
    auto add = [&](std::function<void()> task) {
      passes.push_back(Enter(admission, 1).value());
      ASSERT_TRUE(admission.Run(passes.back(), std::move(task), NotDisplaced).ok());
    };
    add([&, others] {
      clock.Advance(seconds(16));
      if (others) Admission::OthersWorked(seconds(15));
    });
    std::atomic<int> at_work{0};
    for (int i = 0; i < 4; ++i) {
      add([&] {
        if (++at_work == 4) known.set_value();
        gate.wait();
      });
    }
    known.get_future().wait();
    add([] {});
    // Four until it begins.
    EXPECT_EQ(Enter(admission, 1, {"default"}, seconds(30)).ok(), others);
    const absl::Status refused = Enter(admission, 1, {"default"}, seconds(9)).status();
    EXPECT_THAT(std::string(Message(refused)),
                HasSubstr(others ? "would take some 5000 ms" : "would take some 20000 ms"));
    EXPECT_EQ(RetryAfterOf(refused), seconds(4));
    open.set_value();
    admission.Stop();
  }
}

TEST(AdmissionTest, WhatComesTooLateDoesNotMakeTheWaitLookShorter) {
  FakeClock clock;
  Admission admission({.threads = 1, .queue = 1000}, clock);
  auto run = [&](Nanoseconds takes, bool is_late) {
    std::promise<void> ran;
    Admission::Pass pass = Enter(admission, 1).value();
    ASSERT_TRUE(
        admission
            .Run(
                pass,
                [&] {
                  clock.Advance(takes);
                  ran.set_value();
                },
                NotDisplaced,
                [is_late] { return is_late ? DeadlineExceeded("too late") : absl::OkStatus(); })
            .ok());
    ran.get_future().wait();
  };
  run(seconds(1), /*is_late=*/false);
  for (int i = 0; i < 200; ++i) run(Nanoseconds(0), /*is_late=*/true);
  std::promise<void> open, taken;
  std::vector<Admission::Pass> passes;
  for (int i = 0; i < 11; ++i) {
    passes.push_back(Enter(admission, 1).value());
    ASSERT_TRUE(admission
                    .Run(
                        passes.back(),
                        [&, i] {
                          if (i > 0) return;
                          taken.set_value();
                          open.get_future().wait();
                        },
                        NotDisplaced)
                    .ok());
  }
  taken.get_future().wait();
  const absl::Status refused = Enter(admission, 1, {"default"}, seconds(20)).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << "ten of a second each are ahead: " << refused;
  EXPECT_THAT(std::string(Message(refused)), HasSubstr("would take some 11000 ms"));
  open.set_value();
  admission.Stop();
}

TEST(AdmissionTest, SpareThreadsKeepATenantsSlowCallsFromOthers) {
  Admission admission({.threads = 1, .spare_threads = 1, .queue = 10});
  std::promise<void> open;
  std::shared_future<void> gate = open.get_future().share();
  std::vector<Admission::Pass> passes;
  for (int i = 0; i < 3; ++i) {
    passes.push_back(Enter(admission, 1, {"greedy"}).value());
    ASSERT_TRUE(admission
                    .Run(
                        passes.back(), [gate] { gate.wait(); }, NotDisplaced)
                    .ok());
  }
  std::promise<void> ran;
  passes.push_back(Enter(admission, 1, {"modest"}).value());
  ASSERT_TRUE(admission
                  .Run(
                      passes.back(), [&] { ran.set_value(); }, NotDisplaced)
                  .ok());
  EXPECT_EQ(ran.get_future().wait_for(seconds(30)), std::future_status::ready);
  open.set_value();
  admission.Stop();
}

TEST(AdmissionTest, BucketsOfTenantsThatStayAwayAreFilledBeforeTheyAreForgotten) {
  FakeClock clock;
  TenantLimits limits;
  ASSERT_TRUE(ParseTenantLimit("*:rate=1,burst=1", &limits).ok());
  Admission admission({.threads = 1, .queue = 10, .tenants = limits}, clock);
  EXPECT_TRUE(Enter(admission, 1, {"acme"}).ok());
  for (int i = 0; i < 10'000; ++i) EXPECT_TRUE(Enter(admission, 1, {StrCat("t", i)}).ok());
  EXPECT_FALSE(Enter(admission, 1, {"acme"}).ok()) << "however many others there are";
  clock.Advance(seconds(1));
  EXPECT_TRUE(Enter(admission, 1, {"acme"}).ok());
}

TEST(AdmissionTest, AFewStreamsAreLetInBesideATenantThatHasAll) {
  Admission admission({.threads = 9, .queue = 9, .streams = 8});
  std::vector<Admission::Pass> readers;
  auto read = [&](const char* tenant) {
    readers.push_back(Enter(admission, 1, {tenant}).value());
    return admission.BeginStream(&readers.back());
  };
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(read("greedy").ok());
  absl::Status refused = read("greedy");
  EXPECT_TRUE(absl::IsResourceExhausted(refused) && RetryAfterOf(refused).has_value()) << refused;
  EXPECT_TRUE(read("modest").ok());
  EXPECT_FALSE(read("modest").ok()) << "an eighth is little, no more";
  EXPECT_TRUE(read("other").ok());
}

TEST(AdmissionTest, SlowReadersAreCountedApartFromCalls) {
  Admission admission({.threads = 1, .queue = 0, .streams = 2});
  std::vector<Admission::Pass> readers;
  for (int i = 0; i < 2; ++i) {
    readers.push_back(Enter(admission, 1).value());
    ASSERT_TRUE(admission.BeginStream(&readers.back()).ok()) << "and there is room again";
  }
  absl::StatusOr<Admission::Pass> third = Enter(admission, 1);
  ASSERT_TRUE(third.ok());
  EXPECT_TRUE(absl::IsResourceExhausted(admission.BeginStream(&*third)));
  EXPECT_EQ(admission.streams(), 2);
  readers.clear();
  EXPECT_TRUE(admission.BeginStream(&*third).ok());
  EXPECT_EQ(admission.calls(), 1);
}

TEST(AdmissionTest, ATenantWithLittleIsLetInBesideOneThatUsesAllBytes) {
  Admission admission({.threads = 4, .queue = 4, .inflight_bytes = 800});
  absl::StatusOr<Admission::Pass> all = Enter(admission, 800, {"greedy"});
  ASSERT_TRUE(all.ok()) << "nobody else is there";
  EXPECT_FALSE(Enter(admission, 1, {"greedy"}).ok());
  absl::StatusOr<Admission::Pass> little = Enter(admission, 100, {"modest"});
  EXPECT_TRUE(little.ok()) << little.status();
  EXPECT_FALSE(Enter(admission, 100, {"modest"}).ok()) << "an eighth is little, no more";
  EXPECT_EQ(admission.tenant_bytes().at("modest"), 100);
}

TEST(TenantLimits, SayWhatIsWrongWithThem) {
  TenantLimits limits;
  EXPECT_TRUE(ParseTenantLimit("acme:rate=50,burst=100,stored=1GiB", &limits).ok());
  EXPECT_EQ(limits.Of("acme").stored_bytes, int64_t{1} << 30);
  EXPECT_EQ(limits.Of("acme").Burst(), 100);
  EXPECT_EQ(limits.Of("other").calls_per_second, 0);
  EXPECT_TRUE(ParseTenantLimit("*:rate=0.5", &limits).ok());
  EXPECT_EQ(limits.Of("other").Burst(), 1) << "one call at once at least";
  for (const auto& [text, what] : std::vector<std::pair<std::string, std::string>>{
           {"acme", "expected TENANT:rate="},
           {":rate=1", "expected TENANT:rate="},
           {"a:rate=0", "rate: \"0\"; expected a number above 0"},
           {"a:rate=nan", "expected a number above 0"},
           {"a:stored=1GB", "stored: \"1GB\"; expected bytes"},
           {"a:stored=9999999TiB", "expected bytes"},
           {"a:speed=1", "\"speed\"; expected rate, burst or stored"},
           {"a:burst=5", "burst: means nothing without rate"},
           {"acme:rate=1", "tenant \"acme\" has two limits"}}) {
    absl::Status status = ParseTenantLimit(text, &limits);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(what)) << text;
  }
}

}  // namespace
}  // namespace fusion
