// What a caller is told while it waits for a plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "core/base/mutex.h"
#include "core/cache/memory_store.h"
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
  void OnStage(std::string_view stage, int done, int total) override {
    EXPECT_EQ(std::this_thread::get_id(), thread_);
    MutexLock lock(&mutex_);
    seen_.push_back(total == 0 ? std::string(stage) : StrCat(stage, " ", done, "/", total));
  }
  std::vector<std::string> seen() const {
    MutexLock lock(&mutex_);
    return seen_;
  }

 private:
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
                 std::make_unique<FakeStarter>([this](const CompileJob&) {
                   while (gate_closed_) std::this_thread::yield();
                   return FakeAct::kCompile;
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
  // One kernel per node.
  Told Ask() {
    std::string model = LinearReluModel().Bytes();
    PlanRequest request;
    request.source.onnx_model = model;
    request.target.isa = "avx2";
    request.options.fusion = FusionMode::kOpByOp;
    Recorder recorder;
    absl::StatusOr<PlanReply> reply = pipeline_.PlanFusion(request, patient_, &recorder);
    EXPECT_TRUE(reply.ok()) << reply.status();
    size_t kernels = reply.ok() ? reply->kernels.size() : 0;
    EXPECT_GE(kernels, 3u);
    return {recorder.seen(), StrCat("compile ", kernels, "/", kernels)};
  }

  CancelToken patient_;
  std::atomic<bool> gate_closed_{false};
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

TEST_F(ProgressTest, ThoseWhoShareABuildAreToldOfItsKernels) {
  gate_closed_ = true;
  std::vector<std::future<Told>> asked;
  for (int i = 0; i < 4; ++i) {
    asked.push_back(std::async(std::launch::async, [this] { return Ask(); }));
  }
  while (pipeline_.shared_total() < 3 || pipeline_.waiters() < 4) std::this_thread::yield();
  gate_closed_ = false;
  for (auto& one : asked) {
    auto [seen, all_there] = one.get();
    EXPECT_EQ(seen.back(), all_there);
    EXPECT_THAT(seen, Contains("plan"));
  }
}

}  // namespace
}  // namespace fusion
