#include "core/pipeline/kernel_builds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/file.h"
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
    clock_.Advance(2 * kFailureTtl);
    acts_ = std::move(acts);
    next_act_ = 0;
    absl::StatusOr<KernelBuilds::Started> started =
        builds_->Start(job_, [] { return std::shared_ptr<const KernelArtifact>(); });
    if (!started.ok()) return started.status();
    const absl::Status ended =
        std::get<KernelBuilds::Claim>(*started).ticket().Wait(CancelToken()).status();
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

}  // namespace
}  // namespace fusion
