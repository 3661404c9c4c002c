#include "core/base/file.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace fusion {
namespace {

TEST(File, WhatIsWrittenIsRead) {
  TempDir dir = TempDir::Create(testing::TempDir(), "file-test-").value();
  std::string path = dir.path() + "/x";
  ASSERT_TRUE(WriteFile(path, std::string_view("a\0b", 3)).ok());
  EXPECT_EQ(ReadFile(path, 3).value(), std::string("a\0b", 3));
  EXPECT_EQ(ReadFile(path, 2).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReadFile(dir.path() + "/y", 9).status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(ReadFile(dir.path(), 1 << 20).ok());
}

TEST(File, WhatIsReplacedIsTheOldOneOrTheNewOne) {
  TempDir dir = TempDir::Create(testing::TempDir(), "file-").value();
  const std::string path = dir.path() + "/record";
  ASSERT_TRUE(ReplaceFile(path, "one").ok());
  ASSERT_TRUE(ReplaceFile(path, "two").ok());
  EXPECT_EQ(ReadFile(path, 100).value(), "two");
  EXPECT_FALSE(std::filesystem::exists(path + ".new"));
  // What cannot be written to its end leaves the old one.
  ASSERT_TRUE(MakeDirectories(path + ".new").ok());
  absl::Status refused = ReplaceFile(path, "three");
  EXPECT_FALSE(refused.ok());
  EXPECT_NE(std::string(Message(refused)).find(path), std::string::npos);
  EXPECT_EQ(ReadFile(path, 100).value(), "two");
}

TEST(File, TempDirsDisappearWithTheirContent) {
  std::string path;
  {
    TempDir dir = TempDir::Create(testing::TempDir(), "file-test-").value();
    TempDir moved = std::move(dir);
    path = moved.path();
    ASSERT_TRUE(MakeDirectories(path + "/a/b").ok());
    ASSERT_TRUE(WriteFile(path + "/a/b/c", "x").ok());
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_FALSE(TempDir::Create(path, "nowhere-").ok());
}

}  // namespace
}  // namespace fusion
