// The real bin/fusion-worker behind the real pool, and everything that can go wrong in it.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

#include "core/base/kernel_abi.h"
#include "core/device/host_isa.h"
#include "tests/service/worker_fixture.h"

namespace fusion {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr const char* kSegfault = kAddressSanitized  ? "exited with 1"
                                  : kThreadSanitized ? "exited with 66"
                                                     : "killed by signal 11 (Segmentation fault)";

// Then not even root deletes it. False where the file system or this user may not.
bool SetImmutable(const std::string& path, bool immutable) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  int flags = 0;
  if (ioctl(fd.get(), FS_IOC_GETFLAGS, &flags) != 0) return false;
  flags = immutable ? flags | FS_IMMUTABLE_FL : flags & ~FS_IMMUTABLE_FL;
  return ioctl(fd.get(), FS_IOC_SETFLAGS, &flags) == 0;
}

TEST_F(WorkerTest, AGoodJobGivesAKernelAndLeavesNothingBehind) {
  Start();
  CompileResult result = Run(GoodJob());
  ASSERT_TRUE(result.ok()) << result.status();
  const KernelArtifact& kernel = **result;
  EXPECT_EQ(kernel.binary.substr(0, 4),
            "\x7f"
            "ELF");
  EXPECT_EQ(kernel.content, Sha256(kernel.binary));
  EXPECT_EQ(kernel.check.reason, "not compared: no reference");
  EXPECT_FALSE(kernel.check.verified);
  EXPECT_GT(kernel.compile_ms, 0);
  EXPECT_GT(kernel.check_ms, 0);
  EXPECT_THAT(kernel.compiler, testing::StartsWith("moody-g++ -std=c++17 -O2"));
  EXPECT_EQ(kernel.compiler.find(dir_.path()), std::string::npos);
  EXPECT_EQ(kernel.binary.find(dir_.path()), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_empty(DirOfSlot(0)));
  EXPECT_EQ(pool_->Stats().isa, HostIsaName());
  EXPECT_EQ(pool_->Stats().restarts, 0);
}

// What the loader maps for it, asked of the loader. Each library makes every start slower.
TEST(WorkerProgram, LoadsTheLiteRuntimeOfProtobufOnly) {
  FILE* pipe = popen("LD_TRACE_LOADED_OBJECTS=1 " FUSION_WORKER, "r");
  ASSERT_NE(pipe, nullptr);
  std::string libraries;
  char buffer[4096];
  while (size_t got = fread(buffer, 1, sizeof(buffer), pipe)) libraries.append(buffer, got);
  EXPECT_EQ(pclose(pipe), 0);
  EXPECT_THAT(libraries, HasSubstr("libprotobuf-lite.so"));
  for (const char* other : {"libprotobuf.so", "libgrpc", "libonnx", "librocksdb"}) {
    EXPECT_THAT(libraries, testing::Not(HasSubstr(other)));
  }
}

TEST_F(WorkerTest, TheSameSourceGivesTheSameBytes) {
  options_.workers = 2;
  Start();
  EXPECT_EQ((*Run(GoodJob()))->content, (*Run(GoodJob()))->content);
  EXPECT_NE((*Run(GoodJob("", 3)))->content, (*Run(GoodJob()))->content);
}

TEST_F(WorkerTest, EveryIsaAndContractCompiles) {
  Start();
  for (Isa isa : kIsas) {
    for (Numerics numerics : {Numerics::kFp32Accumulate, Numerics::kBitwise, Numerics::kFast}) {
      CompileJob job = Job(TestKernelText("fk_test", std::string(IsaName(isa))));
      job.isa = isa;
      job.numerics = numerics;
      CompileResult result = Run(job);
      ASSERT_TRUE(result.ok()) << result.status();
      if (!HostRuns(isa)) {
        EXPECT_THAT((*result)->check.reason, HasSubstr("this machine has"));
      }
    }
  }
}

TEST_F(WorkerTest, ACompileErrorIsQuotedAndItsLogKept) {
  Start();
  CompileJob job = Job("int broken = undeclared_name;");
  absl::Status status = Run(job).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(Message(status)),
              HasSubstr("compiling fk_test (Mul): moody-g++ exited with 1: kernel.cc:1:14: error: "
                        "'undeclared_name' was not declared"));
  EXPECT_THAT(pool_->logs().Read(job.key).value(), HasSubstr("'undeclared_name'"));
  EXPECT_EQ(pool_->Stats().failed, 1);
  EXPECT_TRUE(Run(GoodJob()).ok());
  EXPECT_EQ(pool_->Stats().restarts, 0) << "a compile error costs no worker";
}

TEST_F(WorkerTest, WhatAKernelMayNotUseDoesNotBuild) {
  Start();
  EXPECT_THAT(MessageOf(Job("#include <stdio.h>\n")), HasSubstr("stdio.h"));
  EXPECT_THAT(MessageOf(GoodJob("extern \"C\" int puts(const char*);\n"
                                "int Use() { return puts(\"x\"); }")),
              HasSubstr("undefined reference to `puts'"));
  // A large array that is zeroed becomes a call of memset, which every object has.
  EXPECT_TRUE(Run(GoodJob("struct Big { float x[4096]; };\n"
                          "void Zero(Big* b) { *b = Big{}; }"))
                  .ok());
}

TEST_F(WorkerTest, ObjectsThatAreNoKernelsAreRefused) {
  Start();
  EXPECT_THAT(MessageOf(Job("extern \"C\" int other() { return 1; }")),
              HasSubstr("check: kernel fk_test: the object has no symbol \"fk_test\""));
  EXPECT_THAT(MessageOf(Job("extern \"C\" int fk_test() { return 1; }")),
              HasSubstr("no symbol \"fk_test_descriptor\""));
  EXPECT_THAT(MessageOf(Job(TestKernelText("fk_test", "avx2"))),
              HasSubstr("descriptor: isa \"avx2\"; expected \"x86-64-v2\""));
  std::string old = TestKernelText("fk_test", "x86-64-v2");
  const std::string own = StrCat("#define FUSION_KERNEL_ABI_VERSION ", FUSION_KERNEL_ABI_VERSION);
  size_t at = old.find(own);
  ASSERT_NE(at, std::string::npos);
  old.replace(at, own.size(), "#define FUSION_KERNEL_ABI_VERSION 99");
  EXPECT_THAT(MessageOf(Job(old)), HasSubstr("check: kernel fk_test: ABI version 99"));
  EXPECT_THAT(MessageOf(Job(TestKernelText("fk_test", "x86-64-v2", "", "return -1;"))),
              HasSubstr("descriptor: phase 0 has -1 tasks"));
  EXPECT_EQ(pool_->Stats().restarts, 0);
}

TEST_F(WorkerTest, ACompilerThatHangsIsKilledAtItsLimit) {
  options_.command_limit = milliseconds(500);
  Start();
  absl::Status status = Run(GoodJob("// MARK_HANG")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("moody-g++ killed after 0.5 s"));
  EXPECT_EQ(pool_->Stats().timed_out, 1);
  EXPECT_TRUE(Run(GoodJob()).ok());
  EXPECT_EQ(pool_->Stats().restarts, 0) << "the worker itself was fine";
}

TEST_F(WorkerTest, WhereMemoryRunsOutWorkersGoBeforeTheirStarter) {
  auto score = [](pid_t pid) {
    int value = 0;
    std::ifstream(StrCat("/proc/", pid, "/oom_score_adj")) >> value;
    return value;
  };
  const int own = score(getpid());
  Start();
  auto ticket = pool_->Submit(GoodJob("// MARK_HANG")).value();
  std::vector<pid_t> started;
  ASSERT_TRUE(Eventually([&] {
    started = ChildrenOf(getpid());
    if (started.size() != 1) return false;
    for (size_t i = 0; i < started.size(); ++i) {
      for (pid_t child : ChildrenOf(started[i])) started.push_back(child);
    }
    return started.size() >= 3;  // worker, guard, compiler
  }));
  for (pid_t pid : started) EXPECT_EQ(score(pid), 1000) << pid;
  EXPECT_EQ(score(getpid()), own);
}

TEST_F(WorkerTest, AFloodOfOutputIsCut) {
  Start();
  CompileJob job = GoodJob("// MARK_FLOOD");
  absl::Status status = Run(job).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("bytes of output; at most"));
  EXPECT_LT(Message(status).size(), 4000u);
  EXPECT_LT(pool_->logs().Read(job.key).value().size(), 80u << 10);
}

TEST_F(WorkerTest, AKernelThatCrashesInItsCheckFailsItsJobOnly) {
  Start();
  std::string crash = "*(volatile int*)8 = 1;";
  EXPECT_THAT(MessageOf(Job(TestKernelText("fk_test", "x86-64-v2", "", crash + " return 1;"))),
              HasSubstr(StrCat("worker failed in stage 'check': ", kSegfault)));
  EXPECT_THAT(
      MessageOf(GoodJob("__attribute__((constructor)) static void Boom() { " + crash + " }")),
      HasSubstr(kSegfault));
  EXPECT_THAT(MessageOf(Job(TestKernelText("fk_test", "x86-64-v2", "", "__builtin_trap();"))),
              HasSubstr("killed by signal 4 (Illegal instruction)"));
  EXPECT_TRUE(Run(GoodJob()).ok());
  EXPECT_EQ(pool_->Stats().crashed, 3);
  EXPECT_EQ(pool_->Stats().restarts, 6);
  EXPECT_EQ(logger_.LinesWith("worker_crashed").size(), 6u);
}

TEST_F(WorkerTest, AKernelThatHangsInItsCheckIsKilledAtTheJobLimit) {
  options_.job_limit = seconds(1);
  Start();
  absl::Status status = Run(Job(TestKernelText("fk_test", "x86-64-v2", "",
                                               "for (volatile int i = 0;;) i = i + 1; return 1;")))
                            .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("killed after 1 s in stage 'check'"));
  EXPECT_TRUE(Run(GoodJob()).ok());
}

TEST_F(WorkerTest, AJobWhoseWorkerIsKilledIsTriedOnceMoreAndItsCompilerDies) {
  Start();
  auto ticket = pool_->Submit(GoodJob("// MARK_HANG")).value();
  for (int64_t kills = 1; kills <= 2; ++kills) {
    std::vector<pid_t> guards;
    std::vector<pid_t> workers;
    ASSERT_TRUE(Eventually([&] {
      workers = ChildrenOf(getpid());
      guards = workers.size() == 1 ? ChildrenOf(workers[0]) : std::vector<pid_t>();
      return guards.size() == 1 && !ChildrenOf(guards[0]).empty();
    }));
    ASSERT_EQ(kill(workers[0], SIGKILL), 0);
    EXPECT_TRUE(Eventually([&] { return kill(-guards[0], 0) != 0; })) << "compiler group lives on";
    ASSERT_TRUE(Eventually([&] { return pool_->Stats().restarts == kills; }));
    EXPECT_EQ(pool_->Stats().retried, 1);
  }
  absl::Status status =
      ticket->Wait(CancelToken(Clock::Real(), Clock::Real().Now() + seconds(20))).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(Message(status)),
              HasSubstr("worker failed in stage 'compile': killed by signal 9 (Killed)"));
  EXPECT_EQ(WorkersLostTo(status), 0) << "that is no reason to keep the kernel away for ever";
  EXPECT_TRUE(Run(GoodJob()).ok());
  EXPECT_EQ(pool_->Stats().restarts, 2);
  EXPECT_TRUE(std::filesystem::is_empty(DirOfSlot(0))) << "a new one";
}

TEST_F(WorkerTest, ACompilerThatStartsProcessesWithoutEndFailsItsJobOnly) {
  process_.max_threads = 100;
  Start();
  const std::string mark = StrCat("43210.", getpid());
  EXPECT_THAT(MessageOf(GoodJob(
                  StrCat("// MARK_RUN for i in $(seq 400); do sleep ", mark, " & done; wait"))),
              testing::AllOf(HasSubstr("compiling fk_test (Mul): killed in stage 'compile': "),
                             HasSubstr(" processes and threads; at most 100")));
  EXPECT_TRUE(Eventually([&] {
    return system(StrCat("grep -qsa 'slee[p].", mark, "' /proc/[0-9]*/cmdline").c_str()) != 0;
  })) << "they live on";
  EXPECT_TRUE(Run(GoodJob()).ok());
  EXPECT_EQ(pool_->Stats().failed, 1);
  EXPECT_EQ(pool_->Stats().retried, 0);
}

TEST_F(WorkerTest, ACompilerThatFillsItsDirectoryFailsItsJobOnly) {
  process_.max_dir_bytes = 8 << 20;
  Start();
  EXPECT_THAT(
      MessageOf(GoodJob("// MARK_RUN for i in $(seq 400); do head -c 1000000 /usr/bin/perl > "
                        "../$i; sleep 0.01; done")),
      HasSubstr("killed in stage 'compile': more than 8388608 bytes of files"));
  EXPECT_TRUE(Run(GoodJob()).ok());
  EXPECT_TRUE(std::filesystem::is_empty(DirOfSlot(0)));
}

TEST_F(WorkerTest, WhatACompilerLeavesBesideItsJobIsGoneBeforeTheNext) {
  Start();
  EXPECT_THAT(MessageOf(GoodJob("// MARK_RUN mkdir ../left && echo x > ../left/file")),
              HasSubstr("exited with 7"));
  EXPECT_TRUE(std::filesystem::is_empty(DirOfSlot(0)));
  EXPECT_EQ(pool_->Stats().restarts, 0);
}

// By directories of mode 0300, which their owner may not read, and by depth, which counts for root.
TEST_F(WorkerTest, WhatACompilerHidesCostsItsJobOnly) {
  Start();
  const std::string hide = "umask 0477; d=..; for i in $(seq 20); do d=$d/d; mkdir $d; done; ";
  EXPECT_THAT(MessageOf(GoodJob("// MARK_RUN " + hide + "touch $d/f; sleep 100")),
              HasSubstr("killed in stage 'compile': more than"));
  EXPECT_TRUE(Run(GoodJob()).ok());
  EXPECT_EQ(pool_->Stats().restarts, 1);
  // What a worker may not clear away is not the next job's doing.
  EXPECT_THAT(MessageOf(GoodJob("// MARK_RUN " + hide)),
              testing::AnyOf(HasSubstr("exited with"), HasSubstr("killed in stage")));
  const absl::Status next = Run(GoodJob("// MARK_RUN sleep 1")).status();
  EXPECT_THAT(std::string(Message(next)), HasSubstr("exited with 7"));
  EXPECT_TRUE(Run(GoodJob()).ok());
}

TEST_F(WorkerTest, ADirectoryThatCannotBeRemovedDoesNotKeepItsSlotFromTheNextWorker) {
  process_.max_dir_bytes = 4 << 20;
  Start();
  ASSERT_TRUE(Run(GoodJob()).ok());
  const std::string dir = DirOfSlot(0);
  const std::string file = dir + "/file";
  ASSERT_TRUE(WriteFile(file, std::string(100000, 'x')).ok());
  if (!SetImmutable(file, true)) GTEST_SKIP() << "no file can be made immutable here";
  auto replace = [&] {
    const std::vector<pid_t> workers = ChildrenOf(getpid());
    return workers.size() == 1 && kill(workers[0], SIGKILL) == 0;
  };
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(replace());
    CompileResult result = Run(GoodJob());
    EXPECT_TRUE(result.ok()) << result.status();
  }
  EXPECT_TRUE(std::filesystem::exists(file));
  const std::vector<std::string> told = logger_.LinesWith("worker_directory_left");
  ASSERT_EQ(told.size(), 1u);
  EXPECT_THAT(told[0], HasSubstr(std::filesystem::path(dir).filename().string()));
  EXPECT_TRUE(logger_.LinesWith("worker_not_started").empty());
  // It counts as the slot's.
  const std::string half = "head -c 2050000 /usr/bin/perl; ";
  EXPECT_THAT(MessageOf(GoodJob(StrCat("// MARK_RUN (", half, half, ") > ../more; sleep 100"))),
              HasSubstr("killed in stage 'compile': more than 40"));
  ASSERT_TRUE(SetImmutable(file, false));
  ASSERT_TRUE(Run(GoodJob()).ok());
  ASSERT_TRUE(replace());
  ASSERT_TRUE(Run(GoodJob()).ok());
  EXPECT_FALSE(std::filesystem::exists(dir)) << "tried again";
}

TEST_F(WorkerTest, ACancelledJobLetsGoOfItsWorkerAtOnce) {
  Start();
  auto cancel = std::make_shared<CancelToken>();
  auto ticket = pool_->Submit(GoodJob("// MARK_HANG"), cancel).value();
  ASSERT_TRUE(Eventually([&] { return pool_->Stats().running == 1; }));
  cancel->Cancel();
  EXPECT_EQ(ticket->Wait(CancelToken()).status().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(Run(GoodJob()).ok());
}

TEST_F(WorkerTest, AFullQueueRefuses) {
  options_.queue_limit = 1;
  Start();
  auto cancel = std::make_shared<CancelToken>();
  ASSERT_TRUE(pool_->Submit(GoodJob("// MARK_HANG"), cancel).ok());
  ASSERT_TRUE(Eventually([&] { return pool_->Stats().running == 1; }));
  ASSERT_TRUE(pool_->Submit(GoodJob(), cancel).ok());
  EXPECT_EQ(pool_->Submit(GoodJob()).status().code(), absl::StatusCode::kResourceExhausted);
  cancel->Cancel();
}

TEST_F(WorkerTest, TwoHundredJobsOnTwoWorkers) {
  options_.workers = 2;
  Start();
  std::vector<std::shared_ptr<CompileTicket>> tickets;
  for (int i = 0; i < 200; ++i) {
    bool broken = i % 20 == 7;
    CompileJob job = broken ? Job(StrCat("int x = no", i, ";")) : GoodJob("", i);
    tickets.push_back(pool_->Submit(job).value());
  }
  std::set<Digest> contents;
  int failed = 0;
  CancelToken limit(Clock::Real(), Clock::Real().Now() + seconds(120));
  for (int i = 0; i < 200; ++i) {
    CompileResult result = tickets[static_cast<size_t>(i)]->Wait(limit);
    if (result.ok()) {
      contents.insert((*result)->content);
      EXPECT_THAT((*result)->source, HasSubstr(StrCat("x[i] * ", i, ";")));
    } else {
      ++failed;
    }
  }
  EXPECT_EQ(failed, 10);
  EXPECT_GT(contents.size(), 180u);
  WorkerPoolStats stats = pool_->Stats();
  EXPECT_EQ(stats.done, 190);
  EXPECT_EQ(stats.restarts, 0);
  for (const int slot : {0, 1}) EXPECT_TRUE(std::filesystem::is_empty(DirOfSlot(slot)));
}

TEST_F(WorkerTest, StoppingWhileBusyEndsEverything) {
  options_.workers = 2;
  Start();
  auto hanging = pool_->Submit(GoodJob("// MARK_HANG")).value();
  std::vector<std::shared_ptr<CompileTicket>> tickets;
  for (int i = 0; i < 5; ++i) tickets.push_back(pool_->Submit(GoodJob("", i)).value());
  ASSERT_TRUE(Eventually([&] { return pool_->Stats().running >= 1; }));
  Nanoseconds start = Clock::Real().Now();
  pool_->Stop(seconds(5));
  EXPECT_LT(Clock::Real().Now() - start, seconds(20));
  EXPECT_EQ(hanging->Wait(CancelToken()).status().code(), absl::StatusCode::kUnavailable);
  for (const auto& ticket : tickets) EXPECT_TRUE(ticket->Wait(CancelToken()).ok()) << "drained";
  EXPECT_TRUE(ChildrenOf(getpid()).empty());
}

}  // namespace
}  // namespace fusion
