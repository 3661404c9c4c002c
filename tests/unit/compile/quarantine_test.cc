#include "core/compile/quarantine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/base/files/file.h"
#include "tests/support/fake_clock.h"

namespace fusion {
namespace {

using testing::HasSubstr;

class QuarantineTest : public testing::Test {
 protected:
  std::unique_ptr<Quarantine> Open() { return Quarantine::Open(path_, clock_).value(); }

  TempDir dir_ = TempDir::Create(testing::TempDir(), "quarantine-").value();
  const std::string path_ = dir_.path() + "/quarantine";
  FakeClock clock_;
  const Digest key_ = Sha256("kernel");
};

TEST_F(QuarantineTest, WhatIsInStaysInOverARestart) {
  EXPECT_FALSE(Open()->Find(key_).has_value());
  EXPECT_FALSE(std::filesystem::exists(path_)) << "nothing was needed";
  ASSERT_TRUE(Open()->Add(key_, "worker failed in stage 'check': \xff").ok());
  auto again = Open();
  ASSERT_TRUE(again->Find(key_).has_value());
  const absl::Status status = again->Find(key_)->ToStatus();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("kernel in quarantine since "));
  EXPECT_THAT(std::string(Message(status)), HasSubstr("worker failed in stage 'check'"));
  EXPECT_EQ(again->size(), 1u);
  EXPECT_FALSE(again->Find(Sha256("another")).has_value());
}

TEST_F(QuarantineTest, TheFirstReasonStays) {
  auto quarantine = Open();
  ASSERT_TRUE(quarantine->Add(key_, "first").ok());
  ASSERT_TRUE(quarantine->Add(key_, "second").ok());
  EXPECT_EQ(quarantine->Find(key_)->reason, "first");
  EXPECT_EQ(Open()->Find(key_)->reason, "first");
}

TEST_F(QuarantineTest, WhatIsForgottenIsForgottenForGood) {
  auto quarantine = Open();
  for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(quarantine->Add(Sha256(name), name).ok());
  EXPECT_TRUE(quarantine->Forget(Sha256("b")));
  EXPECT_FALSE(quarantine->Forget(Sha256("b")));
  EXPECT_EQ(Open()->size(), 2u);
  EXPECT_EQ(quarantine->ForgetAll(), 2);
  EXPECT_EQ(quarantine->ForgetAll(), 0);
  EXPECT_EQ(Open()->size(), 0u);
  EXPECT_TRUE(std::filesystem::is_empty(path_));
}

TEST_F(QuarantineTest, DamagedFilesGoAndThoseOfOthersStay) {
  ASSERT_TRUE(Open()->Add(key_, "reason").ok());
  const std::string damaged = StrCat(path_, "/", Sha256("damaged").ToHex(), ".json");
  ASSERT_TRUE(WriteFile(damaged, "{\"reason\": 4").ok());
  ASSERT_TRUE(WriteFile(path_ + "/readme.json", "mine").ok());
  EXPECT_EQ(Open()->size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(damaged));
  EXPECT_TRUE(std::filesystem::exists(path_ + "/readme.json"));
}

TEST_F(QuarantineTest, WhatACrashLeftHalfWrittenGoes) {
  ASSERT_TRUE(Open()->Add(key_, "reason").ok());
  const std::string half = StrCat(path_, "/", Sha256("half").ToHex(), ".json.new");
  ASSERT_TRUE(WriteFile(half, "{\"reason\"").ok());
  ASSERT_TRUE(WriteFile(path_ + "/mine.json.new", "mine").ok());
  EXPECT_EQ(Open()->size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(half));
  EXPECT_TRUE(std::filesystem::exists(path_ + "/mine.json.new"));
}

TEST_F(QuarantineTest, AnEntryThatCannotBeReadNowStaysWithItsKernel) {
  ASSERT_TRUE(MakeDirectories(path_).ok());
  // A link to itself, because root reads what nobody may.
  const std::string loop = StrCat(path_, "/", key_.ToHex(), ".json");
  std::filesystem::create_symlink(loop, loop);
  auto quarantine = Open();
  ASSERT_TRUE(quarantine->Find(key_).has_value());
  EXPECT_THAT(quarantine->Find(key_)->reason,
              HasSubstr("cannot be opened: Too many levels of symbolic links"));
  EXPECT_TRUE(std::filesystem::is_symlink(loop));
}

TEST_F(QuarantineTest, WhatCannotBeKeptIsStillKnown) {
  ASSERT_TRUE(WriteFile(path_, "a file where the directory should be").ok());
  EXPECT_EQ(Quarantine::Open(path_, clock_).status().code(), absl::StatusCode::kUnavailable);
  ASSERT_EQ(std::filesystem::remove(path_), true);
  auto quarantine = Open();
  ASSERT_TRUE(WriteFile(path_, "").ok());
  EXPECT_FALSE(quarantine->Add(key_, "reason").ok());
  EXPECT_TRUE(quarantine->Find(key_).has_value());
}

TEST_F(QuarantineTest, WithoutADirectoryNothingSurvives) {
  auto quarantine = Quarantine::Open("", clock_).value();
  EXPECT_TRUE(quarantine->Add(key_, "reason").ok());
  EXPECT_EQ(quarantine->List().size(), 1u);
  EXPECT_TRUE(quarantine->Forget(key_));
}

TEST_F(QuarantineTest, TheOldestIsForgottenWhenItIsFull) {
  auto quarantine = Quarantine::Open("", clock_).value();
  for (size_t i = 0; i <= Quarantine::kMaxEntries; ++i) {
    ASSERT_TRUE(quarantine->Add(Sha256(StrCat(i)), "reason").ok());
    clock_.Advance(std::chrono::seconds(1));
  }
  EXPECT_EQ(quarantine->size(), Quarantine::kMaxEntries);
  EXPECT_FALSE(quarantine->Find(Sha256("0")).has_value());
  EXPECT_TRUE(quarantine->Find(Sha256("1")).has_value());
}

}  // namespace
}  // namespace fusion
