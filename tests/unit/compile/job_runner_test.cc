#include "core/compile/job_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/base/files/file.h"
#include "core/compile/toolchain.h"

namespace fusion {
namespace {

using testing::HasSubstr;

// Tools that do what the test says with the directory of the job.
class ScriptedTools final : public CommandRunner {
 public:
  std::function<CommandResult(const Command& command)> act;

  absl::StatusOr<CommandResult> Run(const Command& command) override { return act(command); }
};

class AcceptingChecker final : public KernelChecker {
 public:
  absl::StatusOr<CheckReport> Check(const CompileJob& /*job*/,
                                    std::string_view /*shared_object*/) override {
    return CheckReport{.verified = true};
  }
};

class JobRunnerTest : public testing::Test {
 protected:
  JobRunnerTest() : dir_(TempDir::Create(testing::TempDir(), "job-runner-").value()) {}

  // The outcome if both tools end like `result` after `leave_behind`.
  WorkerResult Run(const CommandResult& result,
                   const std::function<void(const std::string& dir)>& leave_behind = {}) {
    tools_.act = [&](const Command& command) {
      if (leave_behind) leave_behind(command.dir);
      return result;
    };
    WorkerJob work;
    work.compile_argv = {"/usr/bin/g++"};
    work.link_argv = {"/usr/bin/ld"};
    return JobRunner(dir_.path(), tools_, checker_, [](std::string_view) {}).Run(work);
  }

  static CommandResult Ended(CommandEnd end, const std::string& how) {
    return {.end = end, .exit_code = end == CommandEnd::kExited ? 0 : -1, .how = how};
  }

  TempDir dir_;
  ScriptedTools tools_;
  AcceptingChecker checker_;
};

const CommandResult kGood = {.end = CommandEnd::kExited, .exit_code = 0, .how = "exited with 0"};

TEST_F(JobRunnerTest, TheBinaryIsWhatTheLinkerWrote) {
  WorkerResult result = Run(kGood, [](const std::string& dir) {
    ASSERT_TRUE(WriteFile(StrCat(dir, "/", Toolchain::kBinaryName), "object").ok());
  });
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.binary, "object");
  EXPECT_TRUE(std::filesystem::is_empty(dir_.path()));
}

// Internal is remembered: the same source would do the same again.
TEST_F(JobRunnerTest, AFloodIsTheKernelsFault) {
  absl::Status status = Run(Ended(CommandEnd::kFlooded, "killed after 9 bytes of output")).status;
  EXPECT_EQ(status, Internal("g++ killed after 9 bytes of output"));
}

TEST_F(JobRunnerTest, ABinaryThatIsTooLongIsTheKernelsFault) {
  absl::Status status = Run(kGood, [](const std::string& dir) {
                          std::string path = StrCat(dir, "/", Toolchain::kBinaryName);
                          ASSERT_TRUE(WriteFile(path, "").ok());
                          std::filesystem::resize_file(path, kMaxWorkerMessageBytes);
                        }).status;
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("bytes; at most"));
}

TEST_F(JobRunnerTest, ALinkerThatWritesNothingIsToldClearly) {
  absl::Status status = Run(kGood).status;
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("No such file"));
}

TEST_F(JobRunnerTest, ALimitOfTimeIsALimit) {
  absl::Status status = Run(Ended(CommandEnd::kTimedOut, "killed after 31 s of CPU time")).status;
  EXPECT_EQ(status, DeadlineExceeded("g++ killed after 31 s of CPU time"));
}

}  // namespace
}  // namespace fusion
