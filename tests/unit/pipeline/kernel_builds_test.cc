#include "core/pipeline/kernels/kernel_builds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "core/base/files/file.h"
#include "tests/support/capturing_logger.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_toolchain.h"
#include "tests/support/fake_worker.h"

namespace fusion {
namespace {

using testing::HasSubstr;

constexpr Nanoseconds kFailureTtl = std::chrono::seconds(60);

class KernelBuildsTest : public testing::Test {
 protected:
  KernelBuildsTest()
      : dir_(TempDir::Create(testing::TempDir(), "builds-").value()),
        toolchain_(Toolchain::Open(FakeToolchainOptions(), tools_).value()),
        quarantine_(Quarantine::Open("", clock_).value()) {
    WorkerPoolOptions options;
    options.log_dir = dir_.path() + "/logs";
    auto act = [this](const CompileJob&) { return acts_.at(next_act_++); };
    pool_ = std::make_unique<WorkerPool>(
        options, toolchain_, std::make_unique<FakeStarter>(act, &talk_), logger_, clock_);
    builds_ =
        std::make_unique<KernelBuilds>(*pool_, kFailureTtl, quarantine_.get(), logger_, clock_);
    job_.full_key = "MatMul";
    job_.key = Sha256(job_.full_key);
    job_.symbol = "fk_1";
    job_.label = "MatMul";
    job_.source = "source";
  }

  // Has the kernel built, once what failed before is forgotten; its workers act so.
  absl::Status Build(std::vector<FakeAct> acts) {
    std::optional<KernelBuilds::Claim> claim;
    return Build(std::move(acts), &claim);
  }
  // Likewise; the claim on what was begun, if anything was, is the caller's.
  absl::Status Build(std::vector<FakeAct> acts, std::optional<KernelBuilds::Claim>* claim) {
    clock_.Advance(2 * kFailureTtl);
    acts_ = std::move(acts);
    next_act_ = 0;
    absl::StatusOr<KernelBuilds::Started> started =
        builds_->Start(job_, [] { return std::shared_ptr<const KernelArtifact>(); });
    if (!started.ok()) return started.status();
    claim->emplace(std::get<KernelBuilds::Claim>(*std::move(started)));
    const absl::Status ended = (*claim)->ticket().Wait(CancelToken()).status();
    EXPECT_EQ(next_act_, acts_.size());
    return ended;
  }

  TempDir dir_;
  FakeTools tools_;
  Toolchain toolchain_;
  CapturingLogger logger_;
  FakeClock clock_;
  FakeTalk talk_;
  std::unique_ptr<Quarantine> quarantine_;
  std::vector<FakeAct> acts_;
  std::atomic<size_t> next_act_{0};
  std::unique_ptr<WorkerPool> pool_;
  std::unique_ptr<KernelBuilds> builds_;
  CompileJob job_;
};

TEST_F(KernelBuildsTest, WorkersLostCountUntilTheKernelIsMade) {
  const std::vector<FakeAct> lost_one = {FakeAct::kDie, FakeAct::kError};
  EXPECT_FALSE(Build(lost_one).ok());
  EXPECT_EQ(quarantine_->size(), 0u) << "one";
  EXPECT_TRUE(Build({FakeAct::kCompile}).ok());
  EXPECT_FALSE(Build(lost_one).ok());
  EXPECT_EQ(quarantine_->size(), 0u) << "one since it was made";
  EXPECT_FALSE(Build({FakeAct::kError}).ok());
  EXPECT_EQ(quarantine_->size(), 0u) << "it cost none";
  EXPECT_FALSE(Build(lost_one).ok());
  ASSERT_EQ(quarantine_->size(), 1u) << "two, with others in between";
  EXPECT_THAT(quarantine_->List()[0].reason, HasSubstr("the try before: "))
      << "what cost the worker, and not only how the job ended";
  EXPECT_THAT(quarantine_->List()[0].reason, HasSubstr("killed by signal 11"));
  EXPECT_THAT(std::string(Message(Build({}))), HasSubstr("in quarantine since"));
}

TEST_F(KernelBuildsTest, WhatIsForgottenCountsFromTheStart) {
  const std::vector<FakeAct> lost_one = {FakeAct::kDie, FakeAct::kError};
  EXPECT_FALSE(builds_->ForgetFailure(job_.key));
  EXPECT_FALSE(Build(lost_one).ok());
  clock_.Advance(2 * kFailureTtl);
  EXPECT_TRUE(builds_->ForgetFailure(job_.key)) << "the worker is held against it still";
  EXPECT_FALSE(Build(lost_one).ok());
  EXPECT_EQ(quarantine_->size(), 0u);
  EXPECT_FALSE(Build({FakeAct::kDie, FakeAct::kDie}).ok());
  EXPECT_EQ(quarantine_->size(), 1u);
}

TEST_F(KernelBuildsTest, AFailureIsSharedUntilItIsRetired) {
  const std::vector<FakeAct> lost_one = {FakeAct::kDie, FakeAct::kError};
  std::optional<KernelBuilds::Claim> first;
  EXPECT_FALSE(Build(lost_one, &first).ok());
  std::optional<KernelBuilds::Claim> second;
  EXPECT_FALSE(Build({}, &second).ok()) << "not tried again";
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(&second->ticket(), &first->ticket());

  first->RetireFailure();
  EXPECT_FALSE(builds_->Join(job_.key).has_value());
  std::optional<KernelBuilds::Claim> third;
  EXPECT_TRUE(Build({FakeAct::kCompile}, &third).ok());
  ASSERT_TRUE(third.has_value());
  EXPECT_NE(&third->ticket(), &second->ticket());

  third->RetireFailure();
  second->RetireFailure();
  first.reset();
  second.reset();
  std::optional<KernelBuilds::Claim> fourth;
  EXPECT_TRUE(Build({}, &fourth).ok()) << "what is made is shared until it is published";
  ASSERT_TRUE(fourth.has_value());
  EXPECT_EQ(&fourth->ticket(), &third->ticket());
}

TEST_F(KernelBuildsTest, ClaimsOnAnEarlierFailureDoNotTouchANewBuild) {
  std::optional<KernelBuilds::Claim> first;
  EXPECT_FALSE(Build({FakeAct::kError}, &first).ok());
  first->RetireFailure();
  clock_.Advance(2 * kFailureTtl);
  acts_ = {FakeAct::kHang};
  next_act_ = 0;
  std::optional<KernelBuilds::Claim> second(std::get<KernelBuilds::Claim>(
      *builds_->Start(job_, [] { return std::shared_ptr<const KernelArtifact>(); })));
  while (talk_.hanging == 0) std::this_thread::yield();
  first->RetireFailure();
  first.reset();
  EXPECT_TRUE(builds_->Join(job_.key).has_value());
  EXPECT_FALSE(second->ticket().IsDone()) << "nobody has cancelled it";
  second->Abandon();
  EXPECT_EQ(second->ticket().Wait(CancelToken()).status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace fusion
