#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "core/base/files/file.h"
#include "core/base/sanitizer.h"
#include "core/compile/worker_pool.h"
#include "tests/support/capturing_logger.h"
#include "tests/support/kernel_source.h"

namespace fusion {

/// Compiles like g++, except that sources with a mark in them make it hang or babble, or do what a
/// shell does with the words behind the mark: 7 if that went well.
inline constexpr std::string_view kMoodyCompiler = R"sh(#!/bin/sh
case "$1" in --version|-print-prog-name=*) exec /usr/bin/g++ "$@";; esac
if grep -q MARK_HANG kernel.cc; then sleep 1000 & wait; fi
if grep -q MARK_FLOOD kernel.cc; then while :; do echo "kernel.cc:1: error: oh no, not again"; done; fi
if grep -q MARK_RUN kernel.cc; then
  sh -c "$(sed -n 's/.*MARK_RUN //p' kernel.cc)" && exit 7
  exit 1
fi
exec /usr/bin/g++ "$@"
)sh";

/// Numbers of the processes whose parent is `parent`; of the dead ones too that nobody has reaped,
/// if `zombies`.
inline std::vector<pid_t> ChildrenOf(pid_t parent, bool zombies = false) {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid <= 0) continue;
    std::string text;
    std::getline(std::ifstream(entry.path() / "stat"), text);
    size_t close = text.rfind(')');
    if (close == std::string::npos || text.size() < close + 5) continue;
    if (std::atoi(text.c_str() + close + 4) == parent && (zombies || text[close + 2] != 'Z')) {
      children.push_back(pid);
    }
  }
  return children;
}

inline bool Eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 2000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

class WorkerTest : public testing::Test {
 protected:
  WorkerTest() : dir_(TempDir::Create(testing::TempDir(), "worker-").value()) {
    options_.workers = 1;
    options_.log_dir = dir_.path() + "/logs";
    scratch_ = dir_.path() + "/scratch";
    EXPECT_TRUE(MakeDirectories(scratch_).ok());
    compiler_ = dir_.path() + "/moody-g++";
    EXPECT_TRUE(WriteFile(compiler_, kMoodyCompiler).ok());
    EXPECT_EQ(chmod(compiler_.c_str(), 0700), 0);
  }

  void Start() {
    runner_ = MakeProcessRunner(FUSION_EXEC);
    ToolchainOptions toolchain;
    toolchain.allowed = {compiler_};
    toolchain.scratch_dir = scratch_;
    absl::StatusOr<Toolchain> opened = Toolchain::Open(toolchain, *runner_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    toolchain_ = std::make_unique<Toolchain>(*std::move(opened));
    process_.worker_path = FUSION_WORKER;
    process_.exec_path = FUSION_EXEC;
    process_.readable = toolchain_->files();
    process_.scratch_dir = scratch_;
    if (kSanitized) process_.memory_bytes = 0;
    pool_ =
        std::make_unique<WorkerPool>(options_, *toolchain_, MakeWorkerStarter(process_), logger_);
  }

  static CompileJob Job(const std::string& source, const std::string& name = "job") {
    CompileJob job;
    job.full_key = StrCat(name, ":", source);
    job.key = Sha256(job.full_key);
    job.symbol = "fk_test";
    job.backend = "cpu";
    job.source = source;
    job.schedule = "schedule { }";
    job.label = "Mul";
    return job;
  }
  static CompileJob GoodJob(const std::string& extra = "", int factor = 2) {
    return Job(TestKernelText("fk_test", "x86-64-v2", extra, "return 4;", factor));
  }

  CompileResult Run(const CompileJob& job) {
    auto ticket = pool_->Submit(job);
    if (!ticket.ok()) return ticket.status();
    return (*ticket)->Wait(
        CancelToken(Clock::Real(), Clock::Real().Now() + std::chrono::seconds(60)));
  }

  // Where the newest worker of a slot works.
  std::string DirOfSlot(int slot) const {
    const std::string prefix = StrCat("slot-", slot, ".");
    int newest = 0;
    for (const auto& entry : std::filesystem::directory_iterator(scratch_)) {
      const std::string name = entry.path().filename().string();
      if (!name.starts_with(prefix)) continue;
      newest = std::max(newest, std::atoi(name.c_str() + prefix.size()));
    }
    return StrCat(scratch_, "/", prefix, newest);
  }

  std::string MessageOf(const CompileJob& job) { return std::string(Message(Run(job).status())); }

  TempDir dir_;
  std::string scratch_;
  std::string compiler_;
  CapturingLogger logger_;
  WorkerPoolOptions options_;
  WorkerProcessOptions process_;
  std::unique_ptr<CommandRunner> runner_;
  std::unique_ptr<Toolchain> toolchain_;
  std::unique_ptr<WorkerPool> pool_;
};

}  // namespace fusion
