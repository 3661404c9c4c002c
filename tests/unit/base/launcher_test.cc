#include "core/base/files/launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/text/text.h"

namespace fusion {
namespace {

TEST(Launcher, NamesStarterLimitsAndProgram) {
  EXPECT_THAT(
      LauncherArgv(
          {.exec_path = "/bin/fusion-exec",
           .argv = {"/bin/cc", "-c"},
           .limits = {.cpu_seconds = 1, .memory_bytes = 2, .file_bytes = 3, .open_files = 4},
           .orphan = Orphan::kDiesWithGroup,
           .last_fd = 3}),
      testing::ElementsAre("/bin/fusion-exec", "guard", StrCat(getpid()), "3", "1", "2", "3", "4",
                           "-", "/bin/cc", "-c"));
  EXPECT_EQ(LauncherArgv({.exec_path = "/bin/fusion-exec",
                          .argv = {"/bin/cc"},
                          .limits = {},
                          .out_of_memory = OutOfMemory::kGoesFirst})[8],
            "first");
}

TEST(Launcher, ASiblingIsBesideThisProgram) {
  std::string self = SiblingProgram("base_test");
  EXPECT_EQ(access(self.c_str(), X_OK), 0) << self;
  EXPECT_EQ(SiblingProgram("other"), self.substr(0, self.size() - 9) + "other");
}

TEST(Launcher, SaysHowAProcessEnded) {
  EXPECT_EQ(DescribeWaitStatus(system("exit 3")), "exited with 3");
  EXPECT_EQ(DescribeWaitStatus(system("kill -9 $$")), "killed by signal 9 (Killed)");
}

}  // namespace
}  // namespace fusion
