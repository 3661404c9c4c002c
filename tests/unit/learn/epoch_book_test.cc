#include "core/learn/epoch_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/base/files/file.h"
#include "core/base/files/scratch.h"
#include "core/wire/epochs.h"
#include "tests/support/fake_clock.h"

namespace fusion {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const TimedDevice kToy = {"toy", "avx2", 2};

class EpochBookTest : public testing::Test {
 protected:
  std::unique_ptr<EpochBook> Open(int canary_percent = 20) {
    auto book = EpochBook::Open({.path = path_, .canary_percent = canary_percent}, Logger::Silent(),
                                clock_);
    EXPECT_TRUE(book.ok()) << book.status();
    return *std::move(book);
  }
  static Epoch Fitted(double memory, const std::string& tenant = "") {
    return {.tenant = tenant, .device = kToy, .factors = {.memory = memory}, .kernels = 9};
  }

  FakeClock clock_;
  Scratch scratch_ = *Scratch::Create("/tmp", "epoch-book-");
  std::string path_ = scratch_.path() + "/epochs";
};

TEST_F(EpochBookTest, EpochsOutliveTheProcess) {
  EpochList before;
  const PlanChange change{
      .plan_key = Sha256("p"), .device = kToy, .old_kernels = Sha256("k"), .epoch = 1};
  {
    auto book = Open();
    const int64_t number = book->Add(Fitted(2), EpochState::kShadow, "because");
    EXPECT_TRUE(book->Advance(number, EpochState::kShadow, EpochState::kActive, "good").ok());
    book->NotePlan(number, {.plan_key = Sha256("p"), .model_name = "m", .verdict = "changed"});
    book->Log({.epoch = number, .plan_key = Sha256("p"), .text = "made again"});
    book->Keep(Sha256("k"), 7);
    book->NoteChange(change);
    book->NoteChange({.plan_key = Sha256("judged"), .old_kernels = Sha256("k")});
    book->DropChange(Sha256("judged"));
    before = book->List(std::nullopt);
  }
  auto book = Open();
  EXPECT_EQ(book->List(std::nullopt), before);
  EXPECT_EQ(book->InForce("", kToy).factors.memory, 2);
  ASSERT_TRUE(book->ChangeOf(Sha256("p")).has_value());
  EXPECT_EQ(book->ChangeOf(Sha256("p"))->old_kernels, change.old_kernels);
  EXPECT_EQ(book->ChangeOf(Sha256("p"))->epoch, 1);
  EXPECT_EQ(book->ChangeOf(Sha256("judged")), std::nullopt);
  EXPECT_TRUE(book->IsKept(Sha256("k"), 7));
  EXPECT_FALSE(book->IsKept(Sha256("k"), 8));
  EXPECT_EQ(book->Add(Fitted(3), EpochState::kRejected, "no"), 2) << "numbers are never reused";
}

TEST_F(EpochBookTest, ADamagedFileIsPutAside) {
  { Open()->Add(Fitted(2), EpochState::kActive, "because"); }
  std::string bytes = *ReadFile(path_, 1 << 20);
  for (size_t at : {size_t{0}, bytes.size() / 2, bytes.size() - 1}) {
    std::string other = bytes;
    other[at] = static_cast<char>(other[at] ^ 1);
    ASSERT_TRUE(WriteFile(path_, other).ok());
    EXPECT_THAT(Open()->List(std::nullopt).epochs, IsEmpty()) << at;
    EXPECT_TRUE(std::filesystem::exists(path_ + ".damaged")) << at;
  }
  ASSERT_TRUE(WriteFile(path_, "").ok());
  EXPECT_THAT(Open()->List(std::nullopt).epochs, IsEmpty());
}

TEST_F(EpochBookTest, OneIsActiveAndWhatWasRetiredComesBack) {
  auto book = Open();
  const int64_t first = book->Add(Fitted(2), EpochState::kActive, "1");
  const int64_t second = book->Add(Fitted(3), EpochState::kShadow, "2");
  EXPECT_EQ(book->InForce("", kToy).epoch, first);
  EXPECT_TRUE(book->Advance(second, EpochState::kShadow, EpochState::kActive, "better").ok());
  EXPECT_EQ(book->InForce("", kToy).epoch, second);
  EXPECT_EQ(book->List(std::nullopt).epochs[1].state(), EpochState::kRetired);
  EXPECT_EQ(book->Stats().epochs[EpochState::kActive], 1);
  EXPECT_TRUE(book->RollBack(second, "slower").ok());
  EXPECT_EQ(book->InForce("", kToy).epoch, first);
  EXPECT_TRUE(book->RollBack(first, "slower too").ok());
  EXPECT_EQ(book->InForce("", kToy), PlanCalibration()) << "the spec";
  EXPECT_THAT(book->RollBack(first, "again").message(), HasSubstr("epoch 1 is rolled back"));
  EXPECT_EQ(book->RollBack(7, "").code(), absl::StatusCode::kNotFound);
}

TEST_F(EpochBookTest, ACanaryIsForAShareOfNewPlans) {
  auto book = Open(20);
  book->Add(Fitted(2), EpochState::kCanary, "");
  int canaries = 0;
  for (int i = 0; i < 2000; ++i) {
    canaries += book->ForNewPlan("", kToy, Sha256(StrCat(i))).epoch > 0 ? 1 : 0;
  }
  EXPECT_NEAR(canaries, 400, 80);
  EXPECT_EQ(book->ForNewPlan("", {"toy", "avx2", 1}, Sha256("7")).epoch, 0) << "another device";
}

TEST_F(EpochBookTest, TenantsHaveTheirOwnEpochsAndElseTheSharedOnes) {
  auto book = Open();
  const int64_t shared = book->Add(Fitted(2), EpochState::kActive, "");
  book->NotePlan(shared, {.plan_key = Sha256("p")});
  const int64_t own = book->Add(Fitted(3, "a"), EpochState::kActive, "");
  EXPECT_EQ(book->InForce("a", kToy).epoch, own);
  EXPECT_EQ(book->InForce("b", kToy).epoch, shared);
  EXPECT_EQ(book->InForce("", kToy).epoch, shared);
  EXPECT_THAT(book->List("a").epochs, SizeIs(2));
  ASSERT_THAT(book->List("b").epochs, SizeIs(1));
  EXPECT_THAT(book->List("b").epochs[0].plans, IsEmpty()) << "plans are their owners'";
}

TEST_F(EpochBookTest, ItStaysSmall) {
  auto book = Open();
  const int64_t active = book->Add(Fitted(2), EpochState::kActive, "");
  for (size_t i = 0; i < 3 * EpochBook::kMaxDecisions; ++i) {
    book->Add(Fitted(3), EpochState::kRejected, "");
    book->Log({.plan_key = Sha256("p"), .text = "text"});
    book->NotePlan(active, {.plan_key = Sha256(StrCat(i))});
  }
  for (size_t i = 0; i < 2 * EpochBook::kMaxRenewals; ++i) book->Want(Sha256(StrCat(i)), "t", {});
  const EpochList list = book->List(std::nullopt);
  EXPECT_THAT(list.epochs, SizeIs(1 + EpochBook::kMaxRejected));
  EXPECT_EQ(list.epochs.back().number, active) << "what is in force stays";
  EXPECT_THAT(list.epochs.back().plans, SizeIs(Epoch::kMaxPlans));
  EXPECT_THAT(list.decisions, SizeIs(EpochBook::kMaxDecisions));
  EXPECT_EQ(book->wanted(), static_cast<int64_t>(EpochBook::kMaxRenewalsOfTenant));
}

TEST_F(EpochBookTest, ARenewalIsHandedOutOnceAndItsOutcomeIsLogged) {
  auto book = Open();
  const Digest plan = Sha256("p");
  EXPECT_FALSE(book->IsWanted(plan));
  const int64_t epoch = book->Add(Fitted(2), EpochState::kActive, "");
  book->Want(plan, "", {.calibration = {epoch, {.memory = 2}}});
  EXPECT_TRUE(book->IsWanted(plan));
  const std::optional<Renewal> renewal = book->Take(plan);
  ASSERT_TRUE(renewal.has_value());
  EXPECT_FALSE(book->Take(plan).has_value());
  book->OnRenewed(plan, "m", "", *renewal, {.changed = true, .old_us = 20, .new_us = 10});
  book->OnRenewed(plan, "m", "", *renewal, {.old_us = 20, .new_us = 20, .reason = "the same"});
  EXPECT_EQ(book->Stats().renewals_changed, 1);
  EXPECT_EQ(book->Stats().renewals_kept, 1);
  const EpochList list = book->List(std::nullopt);
  ASSERT_THAT(list.decisions, SizeIs(2));
  EXPECT_EQ(list.decisions[1].text, "made again, estimated 20 us -> 10 us");
  EXPECT_EQ(list.decisions[0].text, "stays as it is: the same");
  EXPECT_EQ(list.epochs[0].plans.at(0).verdict, "stays: the same");
}

TEST_F(EpochBookTest, ATenantDisplacesNothingOfOthers) {
  auto book = Open();
  const int64_t shared = book->Add(Fitted(2), EpochState::kActive, "");
  for (size_t i = 0; i < 2 * EpochBook::kMaxEpochs; ++i) {
    Epoch epoch = Fitted(3, "mallory");
    epoch.device.threads = static_cast<int>(i) + 1;
    book->Add(epoch, EpochState::kActive, "");
  }
  for (size_t i = 0; i < 2 * EpochBook::kMaxRenewals; ++i) {
    book->Want(Sha256(StrCat(i)), "mallory", {});
  }
  // Many tenants together.
  book->NoteChange({.plan_key = Sha256("shared")});
  for (size_t i = 0; i < 2 * EpochBook::kMaxChanges; ++i) {
    clock_.Advance(std::chrono::milliseconds(1));
    book->NoteChange({.plan_key = Sha256(StrCat("change ", i)), .tenant = StrCat("t", i % 9)});
  }
  EXPECT_TRUE(book->ChangeOf(Sha256("shared")).has_value());
  EXPECT_TRUE(
      book->ChangeOf(Sha256(StrCat("change ", 2 * EpochBook::kMaxChanges - 1))).has_value());
  EXPECT_FALSE(book->ChangeOf(Sha256("change 0")).has_value());
  clock_.Advance(EpochBook::kChangeWait + std::chrono::hours(1));
  book->NoteChange({.plan_key = Sha256("late")});
  EXPECT_FALSE(book->ChangeOf(Sha256("shared")).has_value()) << "nobody reported about it";
  EXPECT_EQ(book->InForce("", kToy).epoch, shared);
  EXPECT_TRUE(book->Want(Sha256("a plan"), "", {}));
  EXPECT_TRUE(book->IsWanted(Sha256("a plan")));
}

TEST_F(EpochBookTest, WhatWasRolledBackMeanwhileDoesNotAdvance) {
  auto book = Open();
  const int64_t number = book->Add(Fitted(2), EpochState::kShadow, "");
  EXPECT_TRUE(book->RollBack(number, "an operator").ok());
  const absl::Status late =
      book->Advance(number, EpochState::kShadow, EpochState::kCanary, "it would change 0 plans");
  EXPECT_EQ(late.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(book->Get(number)->state(), EpochState::kRolledBack);
  EXPECT_EQ(book->LastRolledBack("", kToy)->number, number);
}

TEST_F(EpochBookTest, ARenewalThatNobodyAsksForIsForgotten) {
  auto book = Open();
  book->Want(Sha256("p"), "", {});
  clock_.Advance(EpochBook::kRenewalWait + std::chrono::seconds(1));
  EXPECT_FALSE(book->IsWanted(Sha256("p")));
  EXPECT_FALSE(book->Take(Sha256("p")).has_value());
}

TEST_F(EpochBookTest, AFullDiskLosesNothingOnceThereIsRoom) {
  const std::string missing = scratch_.path() + "/not/there";
  path_ = missing + "/epochs";
  auto book = Open();
  book->Add(Fitted(2), EpochState::kActive, "");
  book->Flush();
  EXPECT_FALSE(std::filesystem::exists(path_));
  std::filesystem::create_directories(missing);
  book->Flush();
  EXPECT_EQ(Open()->InForce("", kToy).factors.memory, 2);
}

TEST_F(EpochBookTest, PlansOfATenantWithoutEpochsTryTheSharedCanary) {
  auto book = Open(100);
  const int64_t canary = book->Add(Fitted(2), EpochState::kCanary, "");
  EXPECT_EQ(book->ForNewPlan("a", kToy, Sha256("p")).epoch, canary);
  const int64_t own = book->Add(Fitted(3, "a"), EpochState::kActive, "");
  EXPECT_EQ(book->ForNewPlan("a", kToy, Sha256("p")).epoch, own);
}

}  // namespace
}  // namespace fusion
