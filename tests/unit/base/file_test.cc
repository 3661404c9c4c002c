#include "core/base/file.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace fusion {
namespace {

TEST(File, WhatIsWrittenIsRead) {
  ScratchDir dir = ScratchDir::Create(testing::TempDir(), "file-test-").value();
  std::string path = dir.path() + "/x";
  ASSERT_TRUE(WriteFile(path, std::string_view("a\0b", 3)).ok());
  EXPECT_EQ(ReadFile(path, 3).value(), std::string("a\0b", 3));
  EXPECT_EQ(ReadFile(path, 2).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReadFile(dir.path() + "/y", 9).status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(ReadFile(dir.path(), 1 << 20).ok());
}

TEST(File, ScratchDirsDisappearWithTheirContent) {
  std::string path;
  {
    ScratchDir dir = ScratchDir::Create(testing::TempDir(), "file-test-").value();
    ScratchDir moved = std::move(dir);
    path = moved.path();
    ASSERT_TRUE(MakeDirectories(path + "/a/b").ok());
    ASSERT_TRUE(WriteFile(path + "/a/b/c", "x").ok());
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_FALSE(ScratchDir::Create(path, "nowhere-").ok());
}

}  // namespace
}  // namespace fusion
