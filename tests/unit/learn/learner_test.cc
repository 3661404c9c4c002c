// Learning on simulated devices: plans whose kernels take the time of their terms with other
// constants than those of the spec, times noise.
#include "core/learn/learner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/cache/memory/memory_records.h"
#include "core/cache/memory/memory_store.h"
#include "tests/support/fake_clock.h"

namespace fusion {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr int kModels = 8;
constexpr int kKernels = 5;

CostTerms TermsOfKernel(int kernel) {
  std::mt19937 random(static_cast<uint32_t>(kernel));
  std::uniform_real_distribution<double> ln(-1, 4);
  return {.element_us = std::exp(ln(random)),
          .memory_us = std::exp(ln(random)),
          .launch_us = 3,
          .exposed = 0.5};
}

class LearnerTest : public testing::Test {
 protected:
  LearnerTest() { book_ = *EpochBook::Open({.canary_percent = 100}, Logger::Silent(), clock_); }

  std::unique_ptr<Learner> MakeLearner() {
    auto preview = [this](const StoredPlan& plan, const PlanCalibration&, const CancelToken&) {
      ++previews_;
      return absl::StatusOr<EpochPlan>(
          EpochPlan{.plan_key = plan.key, .old_us = 2, .new_us = 1, .verdict = "would change"});
    };
    return std::make_unique<Learner>(
        LearnerOptions(), store_,
        TimingSource{.keys = [this] { return timings_.Keys(); },
                     .read = [this](const Digest& key) { return timings_.Get(key); }},
        *book_,
        Learner::Callbacks{.preview = preview,
                           .stays = [this](const Digest& plan) { return plan == pinned_; }},
        Logger::Silent(), clock_);
  }

  // A plan of some kernels, one launch each. `version`: other kernels for the same graph.
  std::shared_ptr<const StoredPlan> Put(int model, PlanCalibration calibration = {},
                                        int version = 0, FusionMode mode = FusionMode::kFused,
                                        const std::string& tenant = "") {
    Plan plan;
    plan.target = "toy";
    plan.isa = "avx2";
    plan.threads = 2;
    plan.fusion = mode;
    plan.calibration = std::move(calibration);
    for (int k = 0; k < kKernels; ++k) {
      const int kernel = model * 100 + k + version * 10000;
      plan.kernels.push_back({.key = Sha256(StrCat("kernel ", kernel)), .isa = "avx2"});
      PlanGroup group{.nodes = {2 * k, 2 * k + 1}, .label = StrCat("Op", k), .kernel = k};
      // Parts take as long as what they are parts of.
      group.terms = TermsOfKernel(mode == FusionMode::kOpByOp ? model * 100 + k : kernel);
      group.form = "element-wise";
      group.bound = "memory";
      group.estimate.time_us = TimeOf(group.terms, {});
      group.op_by_op.estimated_us = 1.3 * group.estimate.time_us;
      plan.groups.push_back(group);
      plan.launches.push_back({.group = k, .kernel = k, .tensors = {}});
    }
    FieldHasher key;
    key.Add("graph", StrCat("graph ", model)).Add("fusion", static_cast<int64_t>(mode));
    if (!tenant.empty()) key.Add("tenant", tenant);
    auto stored =
        std::make_shared<StoredPlan>(MakeStoredPlan(key.bytes(), plan, 1, StrCat("model ", model)));
    EXPECT_TRUE(store_.PutBundle({.plan = stored, .kernels = {}}).ok());
    return stored;
  }

  // One report of one sample a kernel.
  void Report(Learner& learner, const StoredPlan& stored, const CostFactors& truth,
              double noise = 0.02, const std::string& tenant = "t", bool trusted = true,
              const std::map<int, double>& slowed = {}) {
    std::uniform_real_distribution<double> around(1 - noise, 1 + noise);
    std::vector<KernelTimings> measured;
    for (size_t k = 0; k < stored.plan.groups.size(); ++k) {
      const PlanGroup& group = stored.plan.groups[k];
      KernelTimings one{.device = {"toy", "avx2", 2},
                        .kernel = stored.plan.kernels[k].key,
                        .machine = "m",
                        .tenant = tenant,
                        .trusted = trusted,
                        .model_name = stored.model_name,
                        .bound = group.bound,
                        .form = group.form,
                        .terms = group.terms};
      auto slow = slowed.find(static_cast<int>(k));
      const double us =
          TimeOf(group.terms, truth) * around(random_) * (slow == slowed.end() ? 1 : slow->second);
      one.times = {.calls = 1, .samples_us = {static_cast<float>(us)}};
      KernelTimings all = timings_.Get(KeyOf(one)).value_or(KernelTimings{});
      AddTimings(one, &all);
      EXPECT_TRUE(timings_.Put(KeyOf(one), all).ok());
      measured.push_back(all);
    }
    learner.OnReport(stored, measured);
  }
  void Report(Learner& learner, int times, const CostFactors& truth, double noise = 0.02) {
    for (int i = 0; i < times; ++i) Report(learner, *Put(i % kModels), truth, noise);
  }
  void Tick(Learner& learner) {
    clock_.Advance(std::chrono::seconds(1));
    learner.Tick(CancelToken(clock_));
  }
  // A canary from many reports, which becomes active after its wait.
  void ActivateEpoch(Learner& learner, const CostFactors& truth) {
    Report(learner, 8 * 30, truth);
    Tick(learner);
    clock_.Advance(LearnerOptions().canary_wait);
    Tick(learner);
  }
  std::vector<Epoch> Epochs() { return book_->List(std::nullopt).epochs; }
  std::vector<std::string> States() {
    std::vector<std::string> out;
    for (const Epoch& epoch : Epochs()) out.emplace_back(EpochStateName(epoch.state()));
    return out;
  }

  FakeClock clock_;
  MemoryStore store_{int64_t{64} << 20, Logger::Silent()};
  MemoryTimings timings_;
  std::unique_ptr<EpochBook> book_;
  std::mt19937 random_{7};
  Digest pinned_;
  int previews_ = 0;
};

const TimedDevice kToyDevice = {"toy", "avx2", 2};

TEST_F(LearnerTest, ConstantsGoThroughShadowAndCanaryBeforeAllNewPlansUseThem) {
  auto learner = MakeLearner();
  const CostFactors truth{.memory = 2};
  Report(*learner, 80, truth);
  EXPECT_THAT(Epochs(), IsEmpty()) << "nothing happens before a tick";
  Tick(*learner);
  ASSERT_THAT(Epochs(), SizeIs(1));
  EXPECT_EQ(States().front(), "canary") << "the shadow lasts until plans were looked at";
  EXPECT_EQ(previews_, kModels);
  const Epoch epoch = Epochs().front();
  ASSERT_THAT(epoch.events, SizeIs(2));
  EXPECT_EQ(epoch.events[0].state, EpochState::kShadow);
  EXPECT_THAT(epoch.events[0].reason, HasSubstr("the median error falls"));
  EXPECT_THAT(epoch.events[1].reason, HasSubstr("it would change 8 of 8 plans"));
  EXPECT_THAT(epoch.plans, SizeIs(kModels));
  EXPECT_NEAR(epoch.factors.memory, 2, 0.2);
  EXPECT_LT(epoch.after.errors.median, epoch.before.errors.median);
  EXPECT_EQ(book_->InForce("", kToyDevice).epoch, 0) << "a canary is not in force";
  EXPECT_EQ(book_->ForNewPlan("", kToyDevice, Sha256("new")).epoch, epoch.number);

  const auto made = Put(20, book_->ForNewPlan("", kToyDevice, Sha256("new")));
  for (int i = 0; i < LearnerOptions().canary_reports; ++i) Report(*learner, *made, truth);
  EXPECT_EQ(States().front(), "active");
  EXPECT_EQ(book_->InForce("", kToyDevice).epoch, epoch.number);
}

TEST_F(LearnerTest, ACanaryThatItsOwnPlansContradictIsRolledBack) {
  auto learner = MakeLearner();
  Report(*learner, 80, {.memory = 2});
  Tick(*learner);
  const auto made = Put(20, book_->ForNewPlan("", kToyDevice, Sha256("new")));
  for (int i = 0; i < LearnerOptions().canary_reports; ++i) Report(*learner, *made, {});
  EXPECT_EQ(States().front(), "rolled back");
  EXPECT_THAT(Epochs().front().events.back().reason, HasSubstr("the mean error is"));
  EXPECT_EQ(book_->ForNewPlan("", kToyDevice, Sha256("new")).epoch, 0);
}

TEST_F(LearnerTest, ACanaryWithoutPlansBecomesActiveAfterItsTime) {
  auto learner = MakeLearner();
  Report(*learner, 80, {.memory = 2});
  Tick(*learner);
  clock_.Advance(LearnerOptions().canary_wait);
  Tick(*learner);
  EXPECT_EQ(States().front(), "active");
}

TEST_F(LearnerTest, NoiseOfThirtyPercentMovesNothing) {
  auto learner = MakeLearner();
  for (int round = 0; round < 50; ++round) {
    Report(*learner, 40, {}, 0.3);
    Tick(*learner);
  }
  for (const std::string& state : States()) EXPECT_EQ(state, "rejected");
  EXPECT_EQ(book_->InForce("", kToyDevice).epoch, 0);
  EXPECT_EQ(book_->wanted(), 0);
  EXPECT_EQ(learner->drifts(), 0);
}

TEST_F(LearnerTest, ADriftIsNoticedWithinThreeHundredReportsAndFitted) {
  auto learner = MakeLearner();
  Report(*learner, 200, {});
  Tick(*learner);
  EXPECT_THAT(Epochs(), IsEmpty()) << "the constants of the spec fit";
  int reports = 0;
  for (; reports < 300 && learner->drifts() == 0; ++reports) {
    const double slower = 1 + 0.5 * reports / 300;
    Report(*learner, 1, {.element = slower, .memory = slower});
  }
  RecordProperty("reports", reports);
  EXPECT_EQ(learner->drifts(), 1) << reports;
  EXPECT_THAT(Epochs(), IsEmpty());
  Report(*learner, 400, {.element = 1.6, .memory = 1.6});
  clock_.Advance(LearnerOptions().first_pause);
  Tick(*learner);
  EXPECT_THAT(Epochs(), Not(IsEmpty())) << "a drift brings a fit forward";
}

TEST_F(LearnerTest, AConstantDeviceNeverDrifts) {
  auto learner = MakeLearner();
  Report(*learner, 10'000, {}, 0.3);
  EXPECT_EQ(learner->drifts(), 0);
}

TEST_F(LearnerTest, ReportsThatAreNotTrustedMoveNoSharedPlan) {
  auto learner = MakeLearner();
  for (int i = 0; i < 200; ++i) {
    Report(*learner, *Put(i % kModels), {.memory = 4}, 0.02, "mallory", /*trusted=*/false,
           {{0, 50.0}});
  }
  Tick(*learner);
  EXPECT_THAT(learner->Train(CancelToken(clock_)), Contains(HasSubstr("no latencies")));
  EXPECT_THAT(Epochs(), IsEmpty());
  EXPECT_EQ(book_->wanted(), 0);
}

TEST_F(LearnerTest, PlansOfOldConstantsAreMadeAgainUnlessPinned) {
  auto learner = MakeLearner();
  const CostFactors truth{.memory = 2};
  const auto pinned = Put(1);
  pinned_ = pinned->key;
  ActivateEpoch(*learner, truth);
  ASSERT_EQ(States().front(), "active");
  Report(*learner, 8, truth);
  const auto other = Put(2);
  EXPECT_TRUE(book_->IsWanted(other->key));
  EXPECT_FALSE(book_->IsWanted(pinned->key));
  const std::optional<Renewal> renewal = book_->Take(other->key);
  ASSERT_TRUE(renewal.has_value());
  EXPECT_EQ(renewal->calibration.epoch, Epochs().front().number);
  EXPECT_GE(renewal->least_gain, 0.03);
  Report(*learner, 8, truth);
  EXPECT_FALSE(book_->IsWanted(other->key)) << "it was asked for once";
}

TEST_F(LearnerTest, APlanThatBecomesSlowerIsMadeAsBeforeAndItsEpochIsRolledBack) {
  auto learner = MakeLearner();
  const CostFactors truth{.memory = 2};
  ActivateEpoch(*learner, truth);
  Report(*learner, 8, truth);
  const PlanCalibration epoch = book_->InForce("", kToyDevice);
  ASSERT_GT(epoch.epoch, 0);
  for (int model : {2, 3}) {
    const Digest key = Put(model)->key;
    ASSERT_TRUE(book_->Take(key).has_value());
    const auto made = Put(model, epoch, /*version=*/1);
    if (model == 2) learner = MakeLearner();  // the server was started again meanwhile
    for (int i = 0; i < 25; ++i) {
      Report(*learner, *made, truth, 0.02, "t", true,
             {{0, 10.}, {1, 10.}, {2, 10.}, {3, 10.}, {4, 10.}});
    }
    const std::optional<Renewal> back = book_->Take(key);
    ASSERT_TRUE(back.has_value()) << model;
    EXPECT_EQ(back->calibration.epoch, 0);
    EXPECT_LT(back->least_gain, 0) << "in any case";
    // The server is started again before the plan was made as before: it is asked for once more.
    Report(*learner, *made, truth);
    EXPECT_TRUE(book_->Take(key).has_value()) << model;
    Report(*learner, *Put(model), truth);
    EXPECT_FALSE(book_->ChangeOf(key).has_value()) << "it is as before";
  }
  EXPECT_THAT(States(), Contains("rolled back"));
  EXPECT_THAT(book_->List(std::nullopt).decisions.front().text, HasSubstr("slower than before"));
}

TEST_F(LearnerTest, AFusionThatIsThreeTimesSlowerIsUndoneWithinFiftyReports) {
  auto learner = MakeLearner();
  const auto parts = Put(1, {}, /*version=*/2, FusionMode::kOpByOp);
  const auto plan = Put(1);
  for (int i = 0; i < 25; ++i) Report(*learner, *parts, {}, 0.1);
  int reports = 0;
  while (reports < 50 && !book_->IsWanted(plan->key)) {
    Report(*learner, *plan, {}, 0.1, "t", true, {{2, 3.0}});
    ++reports;
  }
  RecordProperty("reports", reports);
  const std::optional<Renewal> renewal = book_->Take(plan->key);
  ASSERT_TRUE(renewal.has_value());
  ASSERT_THAT(renewal->unfuse, SizeIs(2));
  EXPECT_TRUE(renewal->unfuse.contains(4) && renewal->unfuse.contains(5));
  EXPECT_THAT(renewal->unfuse.at(4), HasSubstr("measured slower than its parts: Op2 takes"));
  EXPECT_THAT(book_->List(std::nullopt).decisions.front().text, HasSubstr("to be made again"));
}

TEST_F(LearnerTest, TenThousandNoisyReportsUndoNothing) {
  auto learner = MakeLearner();
  // Of a machine that is slow as a whole, slower still for a while, with parts that are as fast,
  // and with a kernel whose estimate is 2.8 times too short.
  const auto parts = Put(1, {}, /*version=*/2, FusionMode::kOpByOp);
  const auto plan = Put(1);
  for (int i = 0; i < 10'000; ++i) {
    const double speed = i / 100 % 2 == 0 ? 3 : 4;
    const CostFactors slow{.launch = speed, .element = speed, .memory = speed};
    Report(*learner, i / 50 % 4 == 0 ? *parts : *plan, slow, 0.3, "t", true, {{2, 2.8}});
    ASSERT_EQ(book_->wanted(), 0) << i;
  }
  EXPECT_THAT(book_->List(std::nullopt).decisions, IsEmpty());
}

TEST_F(LearnerTest, WithoutMeasuredPartsNothingIsUndone) {
  auto learner = MakeLearner();
  const auto plan = Put(1);
  for (int i = 0; i < 200; ++i) Report(*learner, *plan, {}, 0.1, "t", true, {{2, 10.0}});
  EXPECT_EQ(book_->wanted(), 0);
}

TEST_F(LearnerTest, ATenantRollsBackNoSharedEpoch) {
  auto learner = MakeLearner();
  const CostFactors truth{.memory = 2};
  ActivateEpoch(*learner, truth);
  const PlanCalibration shared = book_->InForce("", kToyDevice);
  ASSERT_GT(shared.epoch, 0);
  ASSERT_EQ(book_->InForce("mallory", kToyDevice), shared);
  for (int model = 30; model < 36; ++model) {
    const auto plan = Put(model, {}, 0, FusionMode::kFused, "mallory");
    for (int i = 0; i < 25; ++i) Report(*learner, *plan, truth, 0.02, "mallory", false);
    ASSERT_TRUE(book_->Take(plan->key).has_value()) << model;
    const auto made = Put(model, shared, /*version=*/1, FusionMode::kFused, "mallory");
    for (int i = 0; i < 25; ++i) {
      Report(*learner, *made, {.element = 50, .memory = 50}, 0.02, "mallory", false);
    }
  }
  EXPECT_EQ(book_->InForce("", kToyDevice), shared);
  EXPECT_EQ(book_->Get(shared.epoch)->state(), EpochState::kActive);
}

TEST_F(LearnerTest, ATenantWithManyDevicesDisplacesNothingShared) {
  auto learner = MakeLearner();
  Report(*learner, 80, {.memory = 2});
  KernelTimings timing{.device = {"toy", "avx2", 1}, .tenant = "mallory"};
  for (int threads = 1; threads < 2000; ++threads) {
    timing.device.threads = threads;
    learner->OnTiming(timing);
  }
  Tick(*learner);
  ASSERT_THAT(Epochs(), SizeIs(1));
  EXPECT_EQ(States().front(), "canary");
}

TEST_F(LearnerTest, PlansOfACanaryStayUntilItIsJudged) {
  auto learner = MakeLearner();
  const CostFactors truth{.memory = 2};
  Report(*learner, 80, truth);
  Tick(*learner);
  const auto made = Put(20, book_->ForNewPlan("", kToyDevice, Sha256("new")));
  ASSERT_GT(made->plan.calibration.epoch, 0);
  // Another machine has measured its kernels often before.
  for (int i = 0; i < LearnerOptions().canary_reports - 1; ++i) Report(*learner, *made, truth);
  for (size_t k = 0; k < made->plan.kernels.size(); ++k) {
    KernelTimings all{.device = kToyDevice, .kernel = made->plan.kernels[k].key};
    all.machine = "m";
    all.tenant = "t";
    all.trusted = true;
    KernelTimings known = *timings_.Get(KeyOf(all));
    known.times.samples_us.resize(40, known.times.samples_us.front());
    ASSERT_TRUE(timings_.Put(KeyOf(known), known).ok());
  }
  Report(*learner, *made, truth);
  EXPECT_EQ(States().front(), "active");
  EXPECT_EQ(book_->wanted(), 0);
}

TEST_F(LearnerTest, WhatWasRolledBackIsNotTriedAgainAtOnce) {
  auto learner = MakeLearner();
  const CostFactors truth{.memory = 2};
  ActivateEpoch(*learner, truth);
  ASSERT_EQ(States().front(), "active");
  ASSERT_TRUE(book_->RollBack(Epochs().front().number, "an operator").ok());
  for (int round = 0; round < 5; ++round) {
    Report(*learner, 200, truth);
    clock_.Advance(std::chrono::hours(1));
    Tick(*learner);
  }
  EXPECT_EQ(book_->InForce("", kToyDevice).epoch, 0);
  EXPECT_THAT(Epochs(), SizeIs(1));
}

TEST_F(LearnerTest, BesideMeasuredPartsNoiseUndoesNothingAndASlowFusionIsUndone) {
  auto learner = MakeLearner();
  const auto parts = Put(1, {}, /*version=*/2, FusionMode::kOpByOp);
  const auto plan = Put(1);
  for (int i = 0; i < 1000; ++i) {
    Report(*learner, *parts, {}, 0.3);
    Report(*learner, *plan, {}, 0.3);
  }
  EXPECT_EQ(book_->wanted(), 0);
  for (int i = 0; i < 50; ++i) Report(*learner, *plan, {}, 0.1, "t", true, {{3, 1.5}});
  const std::optional<Renewal> renewal = book_->Take(plan->key);
  ASSERT_TRUE(renewal.has_value()) << "slower by half as its measured parts";
  EXPECT_THAT(renewal->unfuse.at(6), HasSubstr(", its parts "));
}

TEST_F(LearnerTest, TrainingSaysWhyNothingCameOfIt) {
  auto learner = MakeLearner();
  Report(*learner, 80, {});
  EXPECT_THAT(learner->Train(CancelToken(clock_)),
              Contains(HasSubstr("the constants in force fit")));
  Report(*learner, 80, {.memory = 3});
  for (int i = 0; i < 80; ++i) Report(*learner, 8, {.memory = 3});
  EXPECT_THAT(learner->Train(CancelToken(clock_)), Contains(HasSubstr("is in the shadow")));
  EXPECT_THAT(learner->Train(CancelToken(clock_)), Contains(HasSubstr("under trial")));
}

}  // namespace
}  // namespace fusion
