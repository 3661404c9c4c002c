#include "core/pipeline/planning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "core/cache/memory/memory_store.h"
#include "core/pipeline/plan_builds.h"
#include "tests/support/capturing_logger.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_toolchain.h"
#include "tests/support/fake_worker.h"
#include "tests/support/test_model.h"

namespace fusion {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

thread_local bool t_is_caller = false;

// Holds up the threads that plan while `closed`; moves on by `step` with every look.
class GatedClock final : public Clock {
 public:
  Nanoseconds Now() const override {
    if (closed && !t_is_caller) ++held_up;
    while (closed && !t_is_caller) std::this_thread::yield();
    return Nanoseconds(now_.fetch_add(step));
  }
  Nanoseconds UnixTime() const override { return Now(); }

  std::atomic<bool> closed{false};
  std::atomic<int64_t> step{0};
  mutable std::atomic<int> held_up{0};  // so far

 private:
  mutable std::atomic<int64_t> now_{1};
};

class PlanningTest : public testing::Test {
 protected:
  PlanningTest() : toolchain_(Toolchain::Open(FakeToolchainOptions(), tools_).value()) {
    t_is_caller = true;
  }

  WorkPtr LinearRelu() {
    std::string model = LinearReluModel().Bytes();
    PlanRequest request;
    request.source.onnx_model = model;
    request.target.isa = "avx2";
    Resolver resolver(BuiltInSpecs().value(), toolchain_, /*recalled_bytes=*/0);
    StageContext stages{patient_, Clock::Real()};
    return resolver.Resolve(request, stages).value()->work;
  }

  // On a thread of its own.
  std::future<PlannedOr> Ask(Planning& planning, const UnfusedNodes& unfused_nodes,
                             const DumpKinds& dumps = {}) {
    return std::async(std::launch::async, [this, &planning, unfused_nodes, dumps] {
      t_is_caller = true;
      PlanOrigin origin;
      return planning.Plan(work_, unfused_nodes, dumps, patient_, &origin);
    });
  }

  CancelToken patient_;
  CapturingLogger logger_;
  FakeTools tools_;
  Toolchain toolchain_;
  GatedClock clock_;
  const WorkPtr work_ = LinearRelu();
};

TEST_F(PlanningTest, OtherRestrictionsAreAnotherPlan) {
  Planning planning({}, toolchain_, logger_, clock_);
  clock_.closed = true;
  auto fused = Ask(planning, {});
  while (planning.waiters() < 1) std::this_thread::yield();
  auto apart = Ask(planning, {{0, "it failed"}, {1, "it failed"}, {2, "it failed"}});
  auto equal = Ask(planning, {});
  while (planning.waiters() < 3) std::this_thread::yield();
  clock_.closed = false;
  EXPECT_THAT(fused.get().value()->stored->plan.fallbacks, IsEmpty());
  EXPECT_THAT(apart.get().value()->stored->plan.fallbacks, SizeIs(3));
  EXPECT_THAT(equal.get().value()->stored->plan.fallbacks, IsEmpty());
  EXPECT_EQ(planning.shared_total(), 1);
}

TEST_F(PlanningTest, BothAreRemembered) {
  Planning planning({}, toolchain_, logger_, clock_);
  const UnfusedNodes apart = {{0, "it failed"}, {1, "it failed"}, {2, "it failed"}};
  PlannedOr first = Ask(planning, {}).get();
  PlannedOr second = Ask(planning, apart).get();
  EXPECT_EQ(Ask(planning, {}).get().value(), first.value());
  EXPECT_EQ(Ask(planning, apart).get().value(), second.value());
}

TEST_F(PlanningTest, TextsAreMadeOnThePlanThreadsUnderTheLimit) {
  for (const DumpKinds& dumps : {DumpKinds{}, DumpKinds{DumpKind::kProgram}}) {
    Planning planning({.limit = Nanoseconds(0)}, toolchain_, logger_, clock_);
    absl::Status status = Ask(planning, {}, dumps).get().status();
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_THAT(std::string(Message(status)), HasSubstr("planning 3 nodes takes more than 0 s"));
  }
}

TEST_F(PlanningTest, TextsThatTookTooLongAreNotHeldAgainstThePlan) {
  Planning planning({.limit = seconds(60), .failure_ttl = hours(1)}, toolchain_, logger_, clock_);
  clock_.step = Nanoseconds(seconds(40)).count();
  absl::Status texts = Ask(planning, {}, {DumpKind::kProgram}).get().status();
  EXPECT_TRUE(absl::IsResourceExhausted(texts)) << texts;
  clock_.step = 0;
  EXPECT_TRUE(Ask(planning, {}).get().ok());
}

TEST_F(PlanningTest, TextsComeToWhoAskedForThem) {
  Planning planning({}, toolchain_, logger_, clock_);
  std::shared_ptr<const Planned> planned =
      Ask(planning, {}, {DumpKind::kProgram, DumpKind::kSource}).get().value();
  EXPECT_THAT(planned->dumps, SizeIs(1 + planned->jobs.size())) << "a program, and every source";
  EXPECT_THAT(Ask(planning, {}).get().value()->dumps, IsEmpty());
}

TEST_F(PlanningTest, WhatWaitsTooLongForAThreadIsNotBegun) {
  Planning planning({.limit = seconds(60)}, toolchain_, logger_, clock_);
  clock_.step = Nanoseconds(hours(1)).count();
  absl::Status status = Ask(planning, {}).get().status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("did not begin within 60 s"));
  clock_.step = 0;
  EXPECT_TRUE(Ask(planning, {}).get().ok()) << "it is not held against the graph";
}

TEST_F(PlanningTest, WhatTookTooLongIsNotTriedAgainForAWhile) {
  Planning planning({.limit = seconds(60), .failure_ttl = hours(1)}, toolchain_, logger_, clock_);
  clock_.step = Nanoseconds(seconds(40)).count();
  absl::Status first = Ask(planning, {}).get().status();
  EXPECT_THAT(std::string(Message(first)), HasSubstr("takes more than 60 s"));
  clock_.step = 0;
  EXPECT_EQ(Ask(planning, {}).get().status(), first);
  EXPECT_EQ(Ask(planning, {}, {DumpKind::kProgram}).get().status(), first);
  EXPECT_TRUE(Ask(planning, {{0, "it failed"}}).get().ok()) << "another plan";
  clock_.step = Nanoseconds(hours(1)).count();
  clock_.Now();
  clock_.step = 0;
  EXPECT_TRUE(Ask(planning, {}).get().ok());
}

TEST_F(PlanningTest, WhatNobodyWantsAnyMoreIsNotPlannedToItsEnd) {
  for (const bool lingers : {false, true}) {
    Planning planning({.threads = 1, .linger = lingers ? Nanoseconds(hours(1)) : Nanoseconds(0)},
                      toolchain_, logger_, clock_);
    clock_.held_up = 0;
    clock_.closed = true;
    CancelToken gone;
    auto asked = std::async(std::launch::async, [&] {
      t_is_caller = true;
      PlanOrigin origin;
      return planning.Plan(work_, {}, {}, gone, &origin);
    });
    // Begun: what has not, never does.
    while (planning.waiters() < 1 || clock_.held_up < 1) std::this_thread::yield();
    gone.Cancel();
    EXPECT_TRUE(absl::IsCancelled(asked.get().status()));
    clock_.closed = false;
    // Behind it, for there is one thread.
    ASSERT_TRUE(Ask(planning, {{0, "it failed"}}).get().ok());
    PlanOrigin origin;
    ASSERT_TRUE(planning.Plan(work_, {}, {}, patient_, &origin).ok());
    EXPECT_EQ(origin, lingers ? PlanOrigin::kRemembered : PlanOrigin::kMade);
  }
}

TEST_F(PlanningTest, ACallerThatGaveUpFindsTheKernelsOfItsPlanNotOfAnother) {
  std::atomic<bool> gate_closed = true;
  MemoryStore store(int64_t{1} << 20, logger_);
  WorkerPool workers({.workers = 1}, toolchain_,
                     std::make_unique<FakeStarter>([&](const CompileJob&) {
                       while (gate_closed) std::this_thread::yield();
                       return FakeAct::kCompile;
                     }),
                     logger_);
  Planning planning({}, toolchain_, logger_, clock_);
  KernelRegistry registry({}, logger_);
  PlanBuilds builds({}, toolchain_, planning, registry, store, workers, logger_, clock_);
  auto fused = Ask(planning, {}).get().value();
  auto apart = Ask(planning, {{0, "it failed"}, {1, "it failed"}, {2, "it failed"}}).get().value();

  auto patient =
      std::async(std::launch::async, [&] { return builds.Build(work_, fused, patient_); });
  while (builds.waiters() == 0) std::this_thread::yield();
  CancelToken hurried(clock_, clock_.Now());
  EXPECT_TRUE(absl::IsDeadlineExceeded(builds.Build(work_, apart, hurried).status()));
  for (const CompileJob& job : apart->jobs) {
    EXPECT_EQ(builds.GetKernel(job.key, hurried).state, KernelState::kPending) << job.label;
  }
  gate_closed = false;
  for (const CompileJob& job : apart->jobs) {
    EXPECT_EQ(builds.GetKernel(job.key, patient_).state, KernelState::kReady) << job.label;
  }
  EXPECT_EQ(patient.get().value()->stored, fused->stored);
  workers.Stop(seconds(30));
}

}  // namespace
}  // namespace fusion
