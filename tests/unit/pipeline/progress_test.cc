// What a caller is told while it waits for a plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>

#include "core/base/threads/mutex.h"
#include "core/cache/memory/memory_store.h"
#include "core/pipeline/plan_fusion.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_toolchain.h"
#include "tests/support/fake_worker.h"
#include "tests/support/test_model.h"

namespace fusion {
namespace {

using testing::Contains;
using testing::ElementsAre;

/// Keeps what it is told, and that it is always told on one thread.
class Recorder final : public StageObserver {
 public:
  explicit Recorder(std::function<void(std::string_view)> on_told, bool follows = true)
      : on_told_(std::move(on_told)), follows_(follows) {}

  bool FollowsOthers() const override { return follows_; }

  void OnStage(std::string_view stage, int done, int total) override {
    EXPECT_EQ(std::this_thread::get_id(), thread_);
    if (on_told_) on_told_(stage);
    MutexLock lock(&mutex_);
    seen_.push_back(total == 0 ? std::string(stage) : StrCat(stage, " ", done, "/", total));
  }
  std::vector<std::string> seen() const {
    MutexLock lock(&mutex_);
    return seen_;
  }

 private:
  const std::function<void(std::string_view)> on_told_;
  const bool follows_;
  const std::thread::id thread_ = std::this_thread::get_id();
  mutable Mutex mutex_;
  std::vector<std::string> seen_ ABSL_GUARDED_BY(mutex_);
};

class ProgressTest : public testing::Test {
 protected:
  ProgressTest()
      : toolchain_(Toolchain::Open(FakeToolchainOptions(), tools_).value()),
        store_(int64_t{64} << 20, Logger::Silent()),
        workers_({.workers = 2}, toolchain_,
                 std::make_unique<FakeStarter>([this](const CompileJob& job) {
                   while (gate_closed_) std::this_thread::yield();
                   return decide_(job);
                 }),
                 Logger::Silent(), worker_clock_),
        pipeline_({}, BuiltInSpecs().value(), toolchain_, store_, workers_, Logger::Silent()) {}
  ~ProgressTest() override {
    gate_closed_ = false;
    workers_.Stop(std::chrono::seconds(30));
  }

  struct Told {
    std::vector<std::string> seen;
    std::string all_there;  // what is said when every kernel is
  };
  // One kernel per node, unless they are fused.
  Told Ask(FusionMode fusion = FusionMode::kOpByOp, bool follows = true) {
    std::string model = LinearReluModel().Bytes();
    PlanRequest request;
    request.source.onnx_model = model;
    request.target.isa = "avx2";
    request.options.fusion = fusion;
    Recorder recorder(on_told_, follows);
    absl::StatusOr<PlanReply> reply = pipeline_.PlanFusion(request, patient_, &recorder);
    EXPECT_TRUE(reply.ok()) << reply.status();
    size_t kernels = reply.ok() ? reply->kernels.size() : 0;
    EXPECT_GE(kernels, 3u);
    return {recorder.seen(), StrCat("compile ", kernels, "/", kernels)};
  }

  CancelToken patient_;
  std::function<void(std::string_view stage)> on_told_;
  std::atomic<bool> gate_closed_{false};
  FakeDecision decide_ = [](const CompileJob&) { return FakeAct::kCompile; };
  FakeTools tools_;
  FakeClock worker_clock_;
  Toolchain toolchain_;
  MemoryStore store_;
  WorkerPool workers_;
  FusionPipeline pipeline_;
};

TEST_F(ProgressTest, StagesAreToldAsTheyBeginAndKernelsAreCounted) {
  auto [seen, all_there] = Ask();
  ASSERT_GE(seen.size(), 10u);
  std::vector<std::string> first(seen.begin(), seen.begin() + 9);
  EXPECT_THAT(first, ElementsAre("recall", "target", "import", "canonicalise", "key", "lookup",
                                 "plan", "emit", "compile"));
  EXPECT_EQ(seen.back(), all_there);
}

TEST_F(ProgressTest, AHitTellsOnlyOfItsLookup) {
  Ask();
  EXPECT_THAT(Ask().seen, ElementsAre("recall", "lookup"));
}

TEST_F(ProgressTest, KernelsOfAPlanThatIsMadeAnewAreCountedAnew) {
  // Until somebody has been told of it, the second plan is not finished.
  std::atomic<bool> told_again{false};
  int plans = 0;
  on_told_ = [&](std::string_view stage) {
    plans += stage == "plan";
    if (plans == 2 && stage == "compile") told_again = true;
  };
  decide_ = [&](const CompileJob& job) {
    if (job.label.find('+') != std::string::npos) return FakeAct::kError;
    Nanoseconds end = Clock::Real().Now() + std::chrono::minutes(1);
    bool last = job.label.find("Relu") != std::string::npos;
    while (last && !told_again && Clock::Real().Now() < end) std::this_thread::yield();
    return FakeAct::kCompile;
  };
  auto [seen, all_there] = Ask(FusionMode::kFused);
  EXPECT_TRUE(told_again);
  ASSERT_EQ(std::count(seen.begin(), seen.end(), "plan"), 2);
  auto next = std::find(seen.rbegin(), seen.rend(), "plan").base();
  ASSERT_NE(next, seen.end());
  EXPECT_TRUE(next->starts_with("compile ")) << *next;
  EXPECT_NE(*next, all_there) << "one is still being made";
  EXPECT_EQ(seen.back(), all_there);
}

// Not that a plan is made anew while it waits: it would not be told that kernels follow.
TEST_F(ProgressTest, WhoDoesNotFollowOthersIsToldOfItsOwnStages) {
  decide_ = [](const CompileJob& job) {
    return job.label.find('+') == std::string::npos ? FakeAct::kCompile : FakeAct::kError;
  };
  auto [seen, all_there] = Ask(FusionMode::kFused, /*follows=*/false);
  EXPECT_THAT(seen, ElementsAre("recall", "target", "import", "canonicalise", "key", "lookup",
                                "plan", "compile", all_there));
}

TEST_F(ProgressTest, ThoseWhoShareABuildAreToldOfItsKernels) {
  gate_closed_ = true;
  std::vector<std::future<Told>> asked;
  for (int i = 0; i < 4; ++i) {
    asked.push_back(std::async(std::launch::async, [this] { return Ask(); }));
  }
  Nanoseconds end = Clock::Real().Now() + std::chrono::minutes(1);
  auto joined = [this] { return pipeline_.shared_total() >= 3 && pipeline_.waiters() >= 4; };
  while (!joined() && Clock::Real().Now() < end) std::this_thread::yield();
  EXPECT_TRUE(joined());
  gate_closed_ = false;
  for (auto& one : asked) {
    auto [seen, all_there] = one.get();
    EXPECT_EQ(seen.back(), all_there);
    EXPECT_THAT(seen, Contains("plan"));
  }
}

// A caller that joins a build and is slow to leave it: here, to be told what it is at.
TEST_F(ProgressTest, AFailureThatWasAnsweredIsNotSharedThoughACallerHoldsItStill) {
  PipelineOptions options;
  options.builds.failure_ttl = Nanoseconds(0);
  FusionPipeline forgetful(options, BuiltInSpecs().value(), toolchain_, store_, workers_,
                           Logger::Silent());
  const std::string model = LinearReluModel().Bytes();
  PlanRequest request;
  request.source.onnx_model = model;
  request.target.isa = "avx2";
  request.options.fusion = FusionMode::kOpByOp;  // nothing to take apart
  std::atomic<bool> broken{true};
  decide_ = [&](const CompileJob&) { return broken ? FakeAct::kError : FakeAct::kCompile; };
  std::atomic<bool> holds{false};
  std::atomic<bool> let_go{false};
  auto slow = std::async(std::launch::async, [&] {
    int compile_told = 0;  // that it begins, then how many kernels there are to wait for
    Recorder recorder([&](std::string_view stage) {
      if (stage != "compile" || ++compile_told != 2) return;
      holds = true;
      while (!let_go) std::this_thread::yield();
    });
    return forgetful.PlanFusion(request, patient_, &recorder).status();
  });
  const Nanoseconds end = Clock::Real().Now() + std::chrono::minutes(1);
  while (!holds && Clock::Real().Now() < end) std::this_thread::yield();
  EXPECT_TRUE(holds);
  EXPECT_EQ(forgetful.PlanFusion(request, patient_).status().code(), absl::StatusCode::kInternal);
  broken = false;
  const absl::Status next = forgetful.PlanFusion(request, patient_).status();
  EXPECT_TRUE(next.ok()) << next;
  let_go = true;
  EXPECT_EQ(slow.get().code(), absl::StatusCode::kInternal) << "it had asked before";
}

}  // namespace
}  // namespace fusion
