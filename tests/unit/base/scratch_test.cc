#include "core/base/files/scratch.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/scratch_dir.h"

namespace fusion {
namespace {

TEST(ScratchTest, IsRemovedAtTheEnd) {
  ScratchDir parent;
  std::string path;
  {
    absl::StatusOr<Scratch> scratch = Scratch::Create(parent.path(), "fusiond-");
    ASSERT_TRUE(scratch.ok()) << scratch.status();
    path = scratch->path();
    EXPECT_TRUE(WriteFile(path + "/file", "text").ok());
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(ScratchTest, WhatTheDeadLeftIsRemovedWhatTheLivingUseIsNot) {
  ScratchDir parent;
  Scratch alive = Scratch::Create(parent.path(), "fusiond-").value();
  std::string dead = parent.path("fusiond-123456");
  ASSERT_TRUE(MakeDirectories(dead + "/slot-0").ok());
  ASSERT_TRUE(WriteFile(dead + "/owner.lock", "").ok());
  std::string without_lock = parent.path("fusiond-strange");
  ASSERT_TRUE(MakeDirectories(without_lock).ok());
  std::string foreign = parent.path("something");
  ASSERT_TRUE(MakeDirectories(foreign).ok());
  ASSERT_TRUE(WriteFile(foreign + "/owner.lock", "").ok());

  Scratch next = Scratch::Create(parent.path(), "fusiond-").value();
  EXPECT_NE(next.path(), alive.path());
  EXPECT_FALSE(std::filesystem::exists(dead));
  EXPECT_TRUE(std::filesystem::exists(alive.path()));
  EXPECT_TRUE(std::filesystem::exists(without_lock)) << "nobody knows whose that is";
  EXPECT_TRUE(std::filesystem::exists(foreign));
}

}  // namespace
}  // namespace fusion
