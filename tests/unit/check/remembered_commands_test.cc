// What kernel tests of several processes and runs share (tests/support/remembered_commands.h).
#include "tests/support/remembered_commands.h"

#include <gtest/gtest.h>

#include "core/base/files/file.h"

namespace fusion {
namespace {

// "Compiles" in into out, and counts.
class Counted : public CommandRunner {
 public:
  explicit Counted(int* runs) : runs_(*runs) {}

  absl::StatusOr<CommandResult> Run(const Command& command) override {
    ++runs_;
    ASSIGN_OR_RETURN(const std::string in, ReadFile(StrCat(command.dir, "/in"), 100));
    if (in == "bad") return CommandResult{.exit_code = 1};
    RETURN_IF_ERROR(WriteFile(StrCat(command.dir, "/out"), StrCat(command.argv[0], " of ", in)));
    return CommandResult{.exit_code = 0};
  }

 private:
  int& runs_;
};

class RememberedCommandsTest : public testing::Test {
 protected:
  // What becomes of `in`: out, or "exit N".
  std::string Made(const std::string& tool, const std::string& in, const Digest& tools = {}) {
    const TempDir dir = TempDir::Create("/tmp", "remembered-").value();
    EXPECT_TRUE(WriteFile(StrCat(dir.path(), "/in"), in).ok());
    // A process of its own each time.
    auto runner =
        RememberCommands(std::make_unique<Counted>(&runs_), tools, StrCat(store_.path(), "/store"));
    const auto result = runner->Run({.argv = {tool}, .dir = dir.path()});
    EXPECT_TRUE(result.ok()) << result.status();
    if (result->exit_code != 0) return StrCat("exit ", result->exit_code);
    return ReadFile(StrCat(dir.path(), "/out"), 100).value_or("nothing");
  }

  const TempDir store_ = TempDir::Create("/tmp", "remembered-").value();
  int runs_ = 0;
};

TEST_F(RememberedCommandsTest, TheSameIsMadeOnce) {
  EXPECT_EQ(Made("g++", "a"), "g++ of a");
  EXPECT_EQ(Made("g++", "a"), "g++ of a");
  EXPECT_EQ(runs_, 1);
}

TEST_F(RememberedCommandsTest, OtherSourcesArgumentsAndToolsAreMadeAnew) {
  EXPECT_EQ(Made("g++", "a"), "g++ of a");
  EXPECT_EQ(Made("g++", "b"), "g++ of b");
  EXPECT_EQ(Made("clang++", "a"), "clang++ of a");
  EXPECT_EQ(Made("g++", "a", Sha256("another version")), "g++ of a");
  EXPECT_EQ(runs_, 4);
}

TEST_F(RememberedCommandsTest, WhatFailsRunsAgain) {
  EXPECT_EQ(Made("g++", "bad"), "exit 1");
  EXPECT_EQ(Made("g++", "bad"), "exit 1");
  EXPECT_EQ(runs_, 2);
}

}  // namespace
}  // namespace fusion
