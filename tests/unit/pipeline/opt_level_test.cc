#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/files/file.h"
#include "core/cache/rocks/rocks_store.h"
#include "core/device/host_cpu.h"
#include "core/onnx/reference_weights.h"
#include "core/pipeline/plan_fusion.h"
#include "core/pipeline/requests/lock.h"
#include "core/tune/tile_search.h"
#include "core/wire/options/tile_search.h"
#include "tests/models/models.h"
#include "tests/support/pipeline_fixture.h"
#include "tests/support/test_model.h"

namespace fusion {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

std::string Mlp(int64_t rows = 64) {
  const ModelSpec& spec = *FindModel("mlp");
  ModelParams params = spec.defaults;
  params.rows = rows;
  return ReferenceWeights(GenerateModel(spec, params).value().model).value().SerializeAsString();
}

// Op by op of two kernels that are searched for: layers of an MLP are one.
std::string TwoProducts() {
  TestModel model;
  model.Input("x", {64, 96}).Reference("w", {96, 128}).Reference("v", {128, 48});
  model.Node("MatMul", {"x", "w"}, {"p"}).Node("MatMul", {"p", "v"}, {"y"}).Output("y");
  return model.Bytes();
}

/// A pipeline whose workers say that the second of a race is the fastest, unless told otherwise.
class OptLevelTest : public FusionPipelineTest {
 protected:
  OptLevelTest() {
    talk_.on_race = [this](const KernelRace& race) {
      RaceTimes times;
      if (!refusal_.empty()) times.refusal = refusal_;
      if (race.runners.empty() || !refusal_.empty()) return times;
      most_racing_ = std::max(++racing_, most_racing_.load());
      ++races_;
      timed_ += static_cast<int>(race.runners.size()) - 1;
      while (race_gate_closed_ && races_ > ungated_) std::this_thread::yield();
      --racing_;
      for (size_t i = 0; i < race.runners.size(); ++i) {
        const double us = i == 1 && faster_ ? 5 : 10;
        times.runners.push_back(
            {.us = std::vector<double>(static_cast<size_t>(race.least_runs), us)});
      }
      if (!faster_) return times;
      times.rival = 1;
      times.first_us.assign(static_cast<size_t>(race.least_pairs), 10);
      times.rival_us.assign(static_cast<size_t>(race.least_pairs), 5);
      return times;
    };
  }
  ~OptLevelTest() override { race_gate_closed_ = false; }

  static PlanRequest Request(std::string_view model, int level) {
    PlanRequest request = FusionPipelineTest::Request(model);
    request.options.opt_level = level;
    return request;
  }

  std::atomic<bool> faster_{true};
  std::atomic<bool> race_gate_closed_{false};
  std::atomic<int> ungated_{0};  // races that the gate lets through
  std::atomic<int> racing_{0};
  std::atomic<int> most_racing_{0};
  std::atomic<int> races_{0};
  std::atomic<int> timed_{0};
  std::string refusal_;

  // From now on compilations of all kernels but those of `plain`, which are answered, end so.
  std::set<Digest> OtherKernelsEnd(const PlanReply& plain, FakeAct act) {
    std::set<Digest> picks;
    for (const PlanKernel& kernel : plain.stored->plan.kernels) picks.insert(kernel.key);
    decide_ = [picks, act](const CompileJob& job) {
      return picks.contains(job.key) ? FakeAct::kCompile : act;
    };
    return picks;
  }
  // Has a search go on behind, which the gate stops in its first race.
  void StartGated(const std::string& model, int level) {
    race_gate_closed_ = true;
    PlanRequest request = Request(model, level);
    request.mode = PlanMode::kByDeadline;
    request.ready_within = milliseconds(300);
    AskUntilItRaces(pipeline_, request);
  }
  // Once its kernels are there in time.
  void AskUntilItRaces(FusionPipeline& pipeline, const PlanRequest& request) {
    for (int i = 0; i < 100 && races_ == 0; ++i) {
      const absl::Status answered = pipeline.PlanFusion(request, patient_).status();
      ASSERT_TRUE(answered.ok()) << answered;
    }
    ASSERT_GT(races_, 0);
  }
  PlanReply AskWithin(const PlanRequest& request, Nanoseconds time) {
    CancelToken deadline(Clock::Real(), Clock::Real().Now() + time);
    absl::StatusOr<PlanReply> reply = pipeline_.PlanFusion(request, deadline);
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.ok() ? *std::move(reply) : PlanReply{};
  }
};

TEST_F(OptLevelTest, WithoutALevelNothingIsTried) {
  const std::string model = Mlp();
  const PlanReply reply = Ask(Request(model, 0));
  EXPECT_EQ(races_, 0);
  EXPECT_EQ(reply.stored->plan.search.level, 0);
  EXPECT_THAT(reply.warnings, Not(Contains(HasSubstr("opt_level"))));
}

TEST_F(OptLevelTest, TimesOfRacesAreToldWithTheFactsOfTheirKernels) {
  std::vector<KernelTimings> timed;
  PipelineOptions options;
  options.builds.on_timed = [&](const KernelTimings& t) { timed.push_back(t); };
  FusionPipeline pipeline(options, BuiltInSpecs().value(), toolchain_, store_, workers_, logger_);
  absl::StatusOr<PlanReply> reply = pipeline.PlanFusion(Request(Mlp(), 1), patient_);
  ASSERT_TRUE(reply.ok()) << reply.status();
  const Plan& plan = reply->stored->plan;
  EXPECT_EQ(static_cast<int64_t>(timed.size()), plan.search.measured + races_)
      << "of each race the pick too";
  std::set<Digest> kernels;
  for (const KernelTimings& t : timed) {
    kernels.insert(t.kernel);
    EXPECT_EQ(t.device, (TimedDevice{plan.target, plan.isa, plan.threads}));
    EXPECT_EQ(t.tenant, "");
    EXPECT_EQ(t.machine, HostCpuName());
    EXPECT_EQ(t.form, "product");
    EXPECT_FALSE(t.bound.empty());
    EXPECT_GT(t.times.calls, 0);
    EXPECT_FALSE(t.times.samples_us.empty());
  }
  EXPECT_EQ(kernels.size(), timed.size());
  for (const PlanLaunch& launch : plan.launches) {
    const Digest& key = plan.kernels[static_cast<size_t>(launch.kernel)].key;
    const auto found = std::find_if(timed.begin(), timed.end(),
                                    [&](const KernelTimings& t) { return t.kernel == key; });
    if (found == timed.end()) continue;
    EXPECT_EQ(found->terms, plan.groups[static_cast<size_t>(launch.group)].terms)
        << "the same facts as in the plan that took it";
  }
  timed.clear();
  const std::string other = Mlp(80);
  PlanRequest own = Request(other, 1);
  own.options.tenant = "shop";
  ASSERT_TRUE(pipeline.PlanFusion(own, patient_).ok());
  EXPECT_FALSE(timed.empty());
  for (const KernelTimings& t : timed) EXPECT_EQ(t.tenant, "shop");
}

TEST_F(OptLevelTest, TheFastestStaysAndIsAnsweredFromTheStoreFromThenOn) {
  const std::string model = Mlp();
  const PlanReply plain = Ask(Request(model, 0));
  const PlanReply tuned = Ask(Request(model, 1));
  const TileSearch& search = tuned.stored->plan.search;
  EXPECT_EQ(search.state, TileSearchState::kDone) << search.reason;
  EXPECT_GT(search.kernels.size(), 0u);
  EXPECT_EQ(search.measured, timed_);
  EXPECT_GT(search.measured, 0);
  EXPECT_GT(search.changed, 0);
  EXPECT_NE(tuned.stored->key, plain.stored->key);
  EXPECT_NE(ExecutableDigest(tuned.stored->plan), ExecutableDigest(plain.stored->plan));
  for (const TunedKernel& kernel : search.kernels) {
    if (kernel.tried.size() < 2) continue;
    ASSERT_GE(kernel.group, 0);
    EXPECT_EQ(kernel.chosen, 1);
    EXPECT_EQ(tuned.stored->plan.groups[static_cast<size_t>(kernel.group)].tiles,
              kernel.tried[1].tiles)
        << "the plan is cut as was measured";
  }
  for (const KernelStatus& kernel : tuned.kernels) EXPECT_EQ(kernel.state, KernelState::kReady);

  const int compiled = compiled_;
  const int races = races_;
  const PlanReply again = Ask(Request(model, 1));
  EXPECT_EQ(again.cache, CacheOutcome::kHitMemory);
  EXPECT_EQ(again.stored->key, tuned.stored->key);
  EXPECT_EQ(DigestOf(again.stored->plan.search), DigestOf(search));
  EXPECT_EQ(compiled_, compiled);
  EXPECT_EQ(races_, races);
  EXPECT_EQ(pipeline_.searches().measured, timed_);
}

TEST_F(OptLevelTest, WhatASearchFindsIsOnTheAccountOfWhoAsked) {
  const TempDir dir = TempDir::Create(testing::TempDir(), "opt-level-").value();
  auto store =
      RocksStore::Open({.dir = dir.path() + "/store", .min_free_bytes = 0}, logger_, Clock::Real());
  ASSERT_TRUE(store.ok()) << store.status();
  FusionPipeline pipeline({}, BuiltInSpecs().value(), toolchain_, **store, workers_, logger_);
  const std::string model = Mlp();
  PlanRequest request = Request(model, 1);
  request.owner.tenant = "shop";
  absl::StatusOr<PlanReply> reply = pipeline.PlanFusion(request, patient_);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_GT(reply->stored->plan.search.changed, 0);
  const std::map<std::string, int64_t> bytes = (*store)->TenantBytes();
  ASSERT_EQ(bytes.size(), 1u);
  EXPECT_EQ(bytes.begin()->first, "shop");
}

TEST_F(OptLevelTest, NothingThatIsFasterLeavesTheModelsPicks) {
  faster_ = false;
  const std::string model = Mlp();
  const PlanReply plain = Ask(Request(model, 0));
  const PlanReply tuned = Ask(Request(model, 1));
  EXPECT_GT(tuned.stored->plan.search.measured, 0);
  EXPECT_EQ(tuned.stored->plan.search.changed, 0);
  EXPECT_EQ(ExecutableDigest(tuned.stored->plan), ExecutableDigest(plain.stored->plan));
}

TEST_F(OptLevelTest, AnotherPlanWithTheSameKernelDoesNotMeasureItAgain) {
  const std::string model = Mlp();
  PlanRequest request = Request(model, 1);
  const PlanReply first = Ask(request);
  const int races = races_;
  request.options.frontier = true;  // another key, the same kernels
  const PlanReply second = Ask(request);
  EXPECT_NE(second.stored->key, first.stored->key);
  EXPECT_EQ(races_, races);
  EXPECT_EQ(second.stored->plan.search.measured, 0);
  EXPECT_EQ(second.stored->plan.search.recalled, first.stored->plan.search.measured);
  EXPECT_EQ(ExecutableDigest(second.stored->plan), ExecutableDigest(first.stored->plan));
}

TEST_F(OptLevelTest, ACandidateThatDoesNotCompileDropsOut) {
  const std::string model = Mlp();
  const PlanReply plain = Ask(Request(model, 0));
  OtherKernelsEnd(plain, FakeAct::kError);
  const PlanReply tuned = Ask(Request(model, 1));
  EXPECT_EQ(tuned.stored->plan.search.state, TileSearchState::kDone);
  EXPECT_EQ(tuned.stored->plan.search.changed, 0);
  EXPECT_EQ(races_, 0);
  EXPECT_GT(pipeline_.searches().dropped, 0);
  EXPECT_EQ(ExecutableDigest(tuned.stored->plan), ExecutableDigest(plain.stored->plan));
  EXPECT_THAT(tuned.stored->plan.search.kernels.at(0).tried.at(1).reason, HasSubstr("g++"));
}

TEST_F(OptLevelTest, APlanOnlyIsPendingUntilItIsCompiled) {
  const std::string model = Mlp();
  PlanRequest request = Request(model, 1);
  request.mode = PlanMode::kPlanOnly;
  EXPECT_EQ(Ask(request).stored->plan.search.state, TileSearchState::kPending);
  EXPECT_EQ(races_, 0);
  request.mode = PlanMode::kCompile;
  EXPECT_EQ(Ask(request).stored->plan.search.state, TileSearchState::kDone);
  EXPECT_GT(races_, 0);
  request.mode = PlanMode::kPlanOnly;
  EXPECT_EQ(Ask(request).stored->plan.search.state, TileSearchState::kDone);
}

TEST_F(OptLevelTest, AMachineThatCannotRunTheKernelsIsAReasonAndNoError) {
  refusal_ = "kernels need avx512, this machine has avx2";
  const std::string model = Mlp();
  const PlanReply reply = Ask(Request(model, 2));
  EXPECT_EQ(reply.stored->plan.search.state, TileSearchState::kNone);
  EXPECT_THAT(reply.warnings,
              Contains(HasSubstr("opt_level 2: no tiles were tried: kernels need")));
  Ask(Request(model, 2));
  EXPECT_EQ(races_, 0);
}

TEST_F(OptLevelTest, ALockSaysAll) {
  const std::string model = Mlp();
  PlanRequest request = Request(model, 1);
  request.dumps = {DumpKind::kLock};
  const PlanReply tuned = Ask(request);
  ASSERT_NE(tuned.lock, nullptr);
  EXPECT_EQ(tuned.lock->plan, ExecutableDigest(tuned.stored->plan)) << "of the tuned plan";
  const int races = races_;
  PlanRequest locked = Request(model, 3);
  locked.options.lock = tuned.lock;
  const PlanReply again = Ask(locked);
  EXPECT_EQ(ExecutableDigest(again.stored->plan), ExecutableDigest(tuned.stored->plan));
  EXPECT_EQ(races_, races);
  EXPECT_THAT(again.warnings, Contains(HasSubstr("the lock says how kernels are cut")));
}

TEST_F(OptLevelTest, ACallerThatLeavesEndsTheSearchAndTheNextOneGoesOn) {
  const std::string model = Mlp();
  race_gate_closed_ = true;
  CancelToken impatient;
  std::thread caller([&] {
    const absl::StatusOr<PlanReply> reply = pipeline_.PlanFusion(Request(model, 1), impatient);
    EXPECT_TRUE(absl::IsCancelled(reply.status())) << reply.status();
  });
  while (races_ == 0) std::this_thread::yield();
  impatient.Cancel();
  caller.join();
  race_gate_closed_ = false;
  const PlanReply next = Ask(Request(model, 1));
  // It may have found the search that was given up under way.
  const PlanReply last = Ask(Request(model, 1));
  EXPECT_EQ(last.stored->plan.search.state, TileSearchState::kDone);
  EXPECT_EQ(next.stored->key, last.stored->key);
}

TEST_F(OptLevelTest, ADeadlineIsKeptWithTheBestSoFar) {
  const std::string model = Mlp();
  race_gate_closed_ = true;
  // A tenth of it is for planning and publishing what was found.
  CancelToken deadline(Clock::Real(), Clock::Real().Now() + milliseconds(4000));
  absl::StatusOr<PlanReply> reply = pipeline_.PlanFusion(Request(model, 1), deadline);
  race_gate_closed_ = false;
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->stored->plan.search.state, TileSearchState::kCutShort);
  EXPECT_THAT(reply->warnings, Contains(HasSubstr("not all tiles were tried")));
  for (const KernelStatus& kernel : reply->kernels) EXPECT_EQ(kernel.state, KernelState::kReady);
  EXPECT_EQ(Ask(Request(model, 1)).stored->plan.search.state, TileSearchState::kDone);
}

TEST_F(OptLevelTest, ByDeadlineAnswersTheModelsPicksAndGoesOn) {
  const std::string model = Mlp();
  race_gate_closed_ = true;
  PlanRequest request = Request(model, 1);
  request.mode = PlanMode::kByDeadline;
  request.ready_within = milliseconds(300);
  const PlanReply soon = Ask(request);
  EXPECT_EQ(soon.stored->plan.search.state, TileSearchState::kPending);
  for (const PlanKernel& kernel : soon.stored->plan.kernels) {
    EXPECT_EQ(pipeline_.GetKernel(kernel.key, patient_).state, KernelState::kReady);
  }
  race_gate_closed_ = false;
  const PlanReply later = Ask(Request(model, 1));
  EXPECT_EQ(later.stored->plan.search.state, TileSearchState::kDone);
  EXPECT_EQ(later.stored->key, soon.stored->key);
}

TEST_F(OptLevelTest, WhoJoinsASearchLeavesInTime) {
  const std::string model = Mlp();
  StartGated(model, 3);
  const PlanReply joined = AskWithin(Request(model, 3), milliseconds(2000));
  ASSERT_NE(joined.stored, nullptr);
  EXPECT_EQ(joined.stored->plan.search.state, TileSearchState::kPending);
  EXPECT_THAT(joined.warnings, Contains(HasSubstr("longer than this request may wait")));
  for (const KernelStatus& kernel : joined.kernels) EXPECT_EQ(kernel.state, KernelState::kReady);
  race_gate_closed_ = false;
  EXPECT_EQ(Ask(Request(model, 3)).stored->plan.search.state, TileSearchState::kDone);
}

TEST_F(OptLevelTest, SearchesTakeTurnsAndOtherBuildsDoNotWaitForThem) {
  const std::string model = Mlp();
  const std::string other = Mlp(32);
  StartGated(model, 1);
  const PlanReply plain = AskWithin(Request(other, 0), seconds(20));
  EXPECT_EQ(plain.stored->plan.search.level, 0);
  const PlanReply busy = AskWithin(Request(other, 1), milliseconds(1500));
  ASSERT_NE(busy.stored, nullptr);
  EXPECT_EQ(busy.stored->plan.search.state, TileSearchState::kPending);
  EXPECT_THAT(busy.warnings, Contains(HasSubstr("busy with other searches")));
  EXPECT_EQ(races_, 1);
  race_gate_closed_ = false;
  const PlanReply after = Ask(Request(other, 1));
  EXPECT_EQ(after.stored->plan.search.state, TileSearchState::kDone);
  EXPECT_THAT(after.stored->plan.search.reason, Not(HasSubstr("were over")));
  EXPECT_EQ(most_racing_, 1);
}

TEST_F(OptLevelTest, WhereTooManySearchesWaitTheModelsPicksAreAnswered) {
  PipelineOptions options;
  options.builds.search_queue = 1;
  FusionPipeline small(options, BuiltInSpecs().value(), toolchain_, store_, workers_, logger_);
  const std::string models[] = {Mlp(), Mlp(32), Mlp(16)};
  race_gate_closed_ = true;
  PlanRequest behind = Request(models[0], 1);
  behind.mode = PlanMode::kByDeadline;
  behind.ready_within = milliseconds(300);
  AskUntilItRaces(small, behind);
  ASSERT_TRUE(small.PlanFusion(Request(models[1], 0), patient_).ok()) << "its kernels are there";
  behind.source.onnx_model = models[1];
  // Once it waits for its turn.
  auto joined = [&] {
    const PlanReply reply = small.PlanFusion(behind, patient_).value();
    return testing::Value(reply.warnings, Contains(HasSubstr("busy with other searches")));
  };
  int tries = 0;
  while (!joined()) ASSERT_LT(++tries, 100);
  const Nanoseconds start = Clock::Real().Now();
  const PlanReply refused = small.PlanFusion(Request(models[2], 1), patient_).value();
  EXPECT_LT(Clock::Real().Now() - start, BudgetOf(1).limit) << "it has not waited for its turn";
  EXPECT_EQ(refused.stored->plan.search.state, TileSearchState::kPending);
  EXPECT_THAT(refused.warnings, Contains(HasSubstr("busy with other searches")));
  race_gate_closed_ = false;
}

TEST_F(OptLevelTest, ARaceThatWasGivenUpIsNotInTheTimesOfTheNext) {
  const std::string model = Mlp();
  race_gate_closed_ = true;
  CancelToken impatient;
  std::thread caller([&] { pipeline_.PlanFusion(Request(model, 1), impatient).IgnoreError(); });
  while (races_ == 0) std::this_thread::yield();
  impatient.Cancel();
  caller.join();
  const PlanReply other = AskWithin(Request(Mlp(32), 1), milliseconds(1500));
  EXPECT_EQ(races_, 1) << "the first has not ended";
  race_gate_closed_ = false;
  EXPECT_EQ(Ask(Request(Mlp(32), 1)).stored->plan.search.state, TileSearchState::kDone);
  EXPECT_EQ(most_racing_, 1);
}

TEST_F(OptLevelTest, AStopEndsSearchesWithTheBestSoFar) {
  const std::string model = TwoProducts();
  race_gate_closed_ = true;
  ungated_ = 1;
  absl::StatusOr<PlanReply> reply = Internal("none");
  PlanRequest request = Request(model, 1);
  request.options.fusion = FusionMode::kOpByOp;
  std::thread caller([&] { reply = pipeline_.PlanFusion(request, patient_); });
  while (races_ < 2) std::this_thread::yield();
  pipeline_.EndSearches();
  caller.join();
  race_gate_closed_ = false;
  ASSERT_TRUE(reply.ok()) << reply.status();
  const TileSearch& search = reply->stored->plan.search;
  EXPECT_EQ(search.state, TileSearchState::kCutShort);
  EXPECT_THAT(search.reason, HasSubstr("the service stops"));
  EXPECT_EQ(search.changed, 1);
}

TEST_F(OptLevelTest, WhatCannotBePlannedWithLeavesTheModelsPicksAndTheFindings) {
  const std::string model = TwoProducts();
  race_gate_closed_ = true;
  ungated_ = 1;
  absl::StatusOr<PlanReply> reply = Internal("none");
  PlanRequest request = Request(model, 1);
  request.options.fusion = FusionMode::kOpByOp;
  std::thread caller([&] { reply = pipeline_.PlanFusion(request, patient_); });
  while (races_ < 2) std::this_thread::yield();
  pipeline_.Stop();  // planning first
  caller.join();
  race_gate_closed_ = false;
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->stored->plan.search.state, TileSearchState::kCutShort);
  EXPECT_EQ(reply->stored->plan.search.changed, 0);
  EXPECT_THAT(reply->warnings, Contains(HasSubstr("was not planned with")));
  for (const KernelStatus& kernel : reply->kernels) EXPECT_EQ(kernel.state, KernelState::kReady);

  FusionPipeline next({}, BuiltInSpecs().value(), toolchain_, store_, workers_, logger_);
  const PlanReply again = next.PlanFusion(request, patient_).value();
  EXPECT_EQ(again.stored->plan.search.state, TileSearchState::kDone);
  EXPECT_GT(again.stored->plan.search.recalled, 0);
  EXPECT_GT(again.stored->plan.search.changed, 0);
}

TEST_F(OptLevelTest, WhatWasFoundBeforeACutStaysThroughTheNextOne) {
  const std::string model = TwoProducts();
  PlanRequest request = Request(model, 1);
  request.options.fusion = FusionMode::kOpByOp;
  race_gate_closed_ = true;
  ungated_ = 1;
  const PlanReply first = AskWithin(request, milliseconds(3000));
  ASSERT_EQ(first.stored->plan.search.state, TileSearchState::kCutShort);
  ASSERT_EQ(first.stored->plan.search.changed, 1);
  // No search comes to its turn before the race that was given up has ended.
  ungated_ = 0;
  const PlanReply second = AskWithin(request, milliseconds(1500));
  EXPECT_THAT(second.warnings, Contains(HasSubstr("not all tiles were tried")));
  EXPECT_EQ(second.stored->plan.search.changed, 1) << "the better one is answered";
  EXPECT_EQ(store_.PeekPlan(first.stored->key)->plan.search.changed, 1);
  race_gate_closed_ = false;
  EXPECT_EQ(Ask(request).stored->plan.search.state, TileSearchState::kDone);
}

TEST_F(OptLevelTest, ACandidateThatKillsItsWorkerIsNotLeftOutForGood) {
  const std::string model = Mlp();
  const PlanReply plain = Ask(Request(model, 0));
  const std::set<Digest> picks = OtherKernelsEnd(plain, FakeAct::kDie);
  const PlanReply tuned = Ask(Request(model, 1));
  EXPECT_EQ(tuned.stored->plan.search.state, TileSearchState::kCutShort);
  EXPECT_THAT(tuned.warnings, Contains(HasSubstr("could be tried now")));
  for (const Digest& pick : picks) {
    EXPECT_THAT(store_.GetKernel({pick}).value->searches, testing::IsEmpty());
  }
}

TEST_F(OptLevelTest, FindingsOfOthersStay) {
  const std::string model = Mlp();
  StartGated(model, 1);
  // Meanwhile another one finds something out about each of the kernels.
  PlanRequest only = Request(model, 1);
  only.mode = PlanMode::kPlanOnly;
  const PlanReply pending = Ask(only);
  Bundle theirs;
  for (const PlanKernel& kernel : pending.stored->plan.kernels) {
    auto copy = std::make_shared<KernelArtifact>(*store_.GetKernel({kernel.key}).value);
    copy->searches.push_back({.race = Sha256("theirs"), .result = {.ops = {1}, .tried = {{}}}});
    theirs.kernels.push_back(std::move(copy));
  }
  ASSERT_TRUE(store_.PutBundle(theirs).ok());
  race_gate_closed_ = false;
  EXPECT_EQ(Ask(Request(model, 1)).stored->plan.search.state, TileSearchState::kDone);
  size_t both = 0;
  for (const auto& kernel : theirs.kernels) {
    const std::vector<MeasuredTiles> now = store_.GetKernel({kernel->key}).value->searches;
    ASSERT_FALSE(now.empty());
    EXPECT_EQ(now[0].race, Sha256("theirs"));
    both += now.size() > 1 ? 1 : 0;
  }
  EXPECT_GT(both, 0u);
}

TEST_F(OptLevelTest, AServiceMayTakeHigherLevelsForItsOwn) {
  PipelineOptions options;
  options.max_opt_level = 1;
  FusionPipeline one(options, BuiltInSpecs().value(), toolchain_, store_, workers_, logger_);
  const std::string model = Mlp();
  const PlanReply reply = one.PlanFusion(Request(model, 3), patient_).value();
  EXPECT_EQ(reply.stored->plan.search.level, 1);
  EXPECT_THAT(reply.warnings, Contains(HasSubstr("opt_level: 3; this service searches at level 1 "
                                                 "at most (--max-opt-level)")));
  EXPECT_EQ(Ask(Request(model, 1)).stored->key, reply.stored->key);
  options.max_opt_level = 0;
  FusionPipeline none(options, BuiltInSpecs().value(), toolchain_, store_, workers_, logger_);
  EXPECT_EQ(none.PlanFusion(Request(model, 3), patient_)->stored->plan.search.level, 0);
}

TEST_F(OptLevelTest, DimsLeftOpenAreNotSearchedFor) {
  TestModel model;
  model.Input("x", {"n", 64}).Reference("w", {64, 32});
  model.Node("MatMul", {"x", "w"}, {"p"}).Node("Relu", {"p"}, {"y"}).Output("y");
  const std::string bytes = model.Bytes();
  PlanRequest request = Request(bytes, 1);
  request.options.dim_ranges = {{"n", {.least = 1, .most = 64}}};
  const PlanReply reply = Ask(request);
  EXPECT_EQ(reply.stored->plan.search.state, TileSearchState::kNone);
  EXPECT_THAT(reply.warnings, Contains(HasSubstr("dims are left open")));
  EXPECT_EQ(races_, 0);
}

}  // namespace
}  // namespace fusion
