#include "core/compile/command.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "core/base/files/file.h"
#include "core/base/files/unique_fd.h"

namespace fusion {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

// Whether the process with this number is dead (perhaps not yet reaped by init) within 5 s.
bool EndsSoon(const std::string& pid) {
  for (int i = 0; i < 5000; ++i) {
    std::string text;
    std::getline(std::ifstream(StrCat("/proc/", StripSpace(pid), "/stat")), text);
    if (text.empty() || text.find(") Z") != std::string::npos) return true;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return false;
}

class CommandTest : public testing::Test {
 protected:
  CommandTest() : dir_(TempDir::Create(testing::TempDir(), "command-").value()) {}

  CommandResult Shell(const std::string& script, const std::function<void(Command*)>& change = {}) {
    Command command;
    command.argv = {"/bin/sh", "-c", script};
    command.dir = dir_.path();
    command.wall_limit = seconds(20);
    if (change) change(&command);
    absl::StatusOr<CommandResult> result = runner_->Run(command);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *result : CommandResult();
  }

  TempDir dir_;
  std::unique_ptr<CommandRunner> runner_ = MakeProcessRunner(FUSION_EXEC);
};

TEST_F(CommandTest, OutputAndExitCodeComeBack) {
  CommandResult result = Shell("echo out; echo err >&2; exit 3");
  EXPECT_EQ(result.end, CommandEnd::kExited);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.how, "exited with 3");
  EXPECT_EQ(result.output, "out\nerr\n");
  EXPECT_FALSE(result.truncated);
}

TEST_F(CommandTest, ItRunsInItsDirectoryWithABareEnvironmentAndNoDescriptors) {
  setenv("FUSION_SECRET", "do not inherit", 1);
  // One that every child would have.
  const UniqueFd inheritable(open("/dev/null", O_RDONLY));  // NOLINT(android-cloexec-open)
  ASSERT_TRUE(inheritable.valid());
  CommandResult result = Shell("pwd; env; ls /proc/self/fd | wc -l");
  EXPECT_THAT(result.output, HasSubstr("/command-"));
  EXPECT_THAT(result.output, HasSubstr("LC_ALL=C"));
  EXPECT_THAT(result.output, testing::Not(HasSubstr("FUSION_SECRET")));
  EXPECT_THAT(result.output, testing::EndsWith("4\n"));  // 0, 1, 2 and the listing itself
}

TEST_F(CommandTest, AHangingCommandIsKilledWithItsChildren) {
  CommandResult result = Shell("sleep 1000 & echo $! > child; sleep 1000",
                               [](Command* c) { c->wall_limit = milliseconds(300); });
  EXPECT_EQ(result.end, CommandEnd::kTimedOut);
  EXPECT_EQ(result.how, "killed after 0.3 s");
  EXPECT_LT(result.took, seconds(10));
  EXPECT_TRUE(EndsSoon(ReadFile(dir_.path() + "/child", 100).value()));
}

TEST_F(CommandTest, WhatOutlivesTheCommandIsKilledToo) {
  CommandResult result = Shell("sleep 1000 & echo $! > child");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_LT(result.took, seconds(10));
  EXPECT_TRUE(EndsSoon(ReadFile(dir_.path() + "/child", 100).value()));
}

TEST_F(CommandTest, AFloodIsCutAndEndsTheCommand) {
  CommandResult result =
      Shell("while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done", [](Command* c) {
        c->log_bytes = 1000;
        c->output_bytes = 200000;
      });
  EXPECT_EQ(result.end, CommandEnd::kFlooded);
  EXPECT_EQ(result.output.size(), 1000u);
  EXPECT_TRUE(result.truncated);
  EXPECT_THAT(result.how, HasSubstr("at most 200000 are allowed"));
}

TEST_F(CommandTest, AFloodThatNeverPausesIsCutSoon) {
  CommandResult result = Shell("exec cat /dev/zero", [](Command* c) { c->output_bytes = 1 << 20; });
  ASSERT_EQ(result.end, CommandEnd::kFlooded);
  constexpr std::string_view kBefore = "killed after ";
  ASSERT_THAT(result.how, testing::StartsWith(kBefore));
  EXPECT_LE(std::stoll(result.how.substr(kBefore.size())), (1 << 20) + (256 << 10))
      << "one look at the limit for every 256 KB";
}

TEST_F(CommandTest, AFloodDoesNotPostponeTheEnd) {
  CommandResult result = Shell("exec cat /dev/zero", [](Command* c) {
    c->wall_limit = milliseconds(300);
    c->output_bytes = int64_t{1} << 50;
  });
  EXPECT_EQ(result.end, CommandEnd::kTimedOut);
}

TEST_F(CommandTest, AllOutputOfACommandThatHasEndedIsRead) {
  CommandResult result = Shell("head -c 65536 /dev/zero", [](Command* c) { c->log_bytes = 65536; });
  EXPECT_EQ(result.output.size(), 65536u);
}

TEST_F(CommandTest, LimitsHold) {
  CommandResult files =
      Shell("head -c 2000000 /dev/zero > big", [](Command* c) { c->limits.file_bytes = 1000000; });
  EXPECT_NE(files.exit_code, 0);
  EXPECT_LE(std::filesystem::file_size(dir_.path() + "/big"), 1000000u);
  CommandResult memory = Shell("x=$(head -c 300000000 /dev/zero | tr '\\0' x); echo ${#x}",
                               [](Command* c) { c->limits.memory_bytes = 100 << 20; });
  EXPECT_NE(memory.exit_code, 0) << memory.output;
  CommandResult cpu = Shell("while :; do :; done", [](Command* c) { c->limits.cpu_seconds = 1; });
  EXPECT_EQ(cpu.end, CommandEnd::kTimedOut);
  EXPECT_EQ(cpu.how, "killed after 1 s of CPU time");
  EXPECT_EQ(Shell("ulimit -c; ulimit -n", [](Command* c) { c->limits.open_files = 77; }).output,
            "0\n77\n");
}

TEST_F(CommandTest, ASignalIsReported) {
  CommandResult result = Shell("kill -SEGV 0");
  EXPECT_EQ(result.end, CommandEnd::kSignalled);
  EXPECT_EQ(result.how, "killed by signal 11 (Segmentation fault)");
}

TEST_F(CommandTest, NobodyOutsideTheGroupIsSignalled) {
  const std::string others[] = {
      StrCat("kill -0 ", getpid()),
      StrCat("perl -e 'exit(syscall(", SYS_tgkill, ", ", getpid(), ", ", getpid(), ", 0) != 0)'")};
  for (const std::string& words : others) {
    EXPECT_EQ(system(words.c_str()), 0) << words << ": the row proves nothing";
    EXPECT_NE(Shell(words).exit_code, 0) << words;
  }
  EXPECT_EQ(Shell("kill -0 0").exit_code, 0);
}

TEST_F(CommandTest, ARelativePathOfTheLauncherWorks) {
  auto relative = MakeProcessRunner(std::filesystem::relative(FUSION_EXEC).string());
  Command command;
  command.argv = {"/bin/true"};
  command.dir = dir_.path();
  EXPECT_EQ(relative->Run(command).value().exit_code, 0);
}

TEST_F(CommandTest, AProgramThatIsNotThereSaysSo) {
  Command command;
  command.argv = {"/nowhere/g++"};
  command.dir = dir_.path();
  CommandResult result = runner_->Run(command).value();
  EXPECT_EQ(result.exit_code, 126);
  EXPECT_THAT(result.output, HasSubstr("starting /nowhere/g++: No such file"));
  auto nothing = MakeProcessRunner("/nowhere/fusion-exec");
  EXPECT_EQ(nothing->Run(command).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(CommandTest, ChildrenDieWithTheirStarter) {
  // A program that starts a guarded command and is killed: the command's whole group must go.
  absl::StatusOr<ChildProcess> starter = ChildProcess::Spawn(
      {.exec_path = FUSION_EXEC,
       .argv = {"/bin/sh", "-c",
                StrCat(FUSION_EXEC,
                       " guard $$ 2 0 0 0 0 - /bin/sh -c 'sleep 1000 & echo $! > inner; wait' & "
                       "sleep 1000")},
       .dir = dir_.path()});
  ASSERT_TRUE(starter.ok());
  std::string inner;
  for (int i = 0; i < 5000 && inner.empty(); ++i) {
    std::this_thread::sleep_for(milliseconds(1));
    inner = ReadFile(dir_.path() + "/inner", 100).value_or("");
  }
  ASSERT_FALSE(inner.empty());
  kill(starter->pid(), SIGKILL);  // only the starter, not its group
  EXPECT_TRUE(EndsSoon(inner));
}

}  // namespace
}  // namespace fusion
