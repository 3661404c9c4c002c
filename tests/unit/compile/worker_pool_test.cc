#include "core/compile/worker_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <future>

#include "core/base/files/file.h"
#include "core/base/threads/retry_after.h"
#include "tests/support/capturing_logger.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_toolchain.h"
#include "tests/support/fake_worker.h"

namespace fusion {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr Nanoseconds kForEver = seconds(30);

// The source of a job says what becomes of it.
FakeAct ActOfSource(const CompileJob& job) {
  static const std::map<std::string, FakeAct> kActs = {{"ok", FakeAct::kCompile},
                                                       {"error", FakeAct::kError},
                                                       {"die", FakeAct::kDie},
                                                       {"garbage", FakeAct::kGarbage},
                                                       {"hang", FakeAct::kHang}};
  return kActs.at(job.source);
}

class WorkerPoolTest : public testing::Test {
 protected:
  WorkerPoolTest()
      : dir_(TempDir::Create(testing::TempDir(), "pool-").value()),
        toolchain_(Toolchain::Open(FakeToolchainOptions(), tools_).value()) {
    options_.log_dir = dir_.path() + "/logs";
  }

  std::unique_ptr<WorkerPool> MakePool() {
    return std::make_unique<WorkerPool>(
        options_, toolchain_, std::make_unique<FakeStarter>(ActOfSource, &talk_), logger_, clock_);
  }

  static CompileJob Job(const std::string& what, const std::string& label = "MatMul") {
    CompileJob job;
    job.full_key = StrCat(what, "/", label);
    job.key = Sha256(job.full_key);
    job.symbol = "fk_1";
    job.label = label;
    job.source = what;
    return job;
  }

  static bool Eventually(const std::function<bool()>& condition) {
    for (int i = 0; i < 5000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(milliseconds(1));
    }
    return false;
  }

  // Lets time pass until `condition`: a slot whose worker does not start makes pauses.
  bool AfterPauses(const std::function<bool()>& condition) {
    return Eventually([&] {
      clock_.Advance(milliseconds(100));
      return condition();
    });
  }

  // Waits until the pool has turned to its worker `times` times more.
  bool LooksAgain(int times) {
    return Eventually([this, target = talk_.looks + times] { return talk_.looks >= target; });
  }

  // Whether the job has ended by now.
  static bool Done(const CompileTicket& ticket) {
    CancelToken impatient;
    impatient.Cancel();
    return !absl::IsCancelled(ticket.Wait(impatient).status());
  }

  CompileResult RunJob(WorkerPool& pool, const CompileJob& job) {
    auto ticket = pool.Submit(job);
    EXPECT_TRUE(ticket.ok()) << ticket.status();
    CancelToken token;
    return (*ticket)->Wait(token);
  }

  TempDir dir_;
  FakeTools tools_;
  Toolchain toolchain_;
  CapturingLogger logger_;
  FakeClock clock_;
  FakeTalk talk_;
  WorkerPoolOptions options_;
};

TEST_F(WorkerPoolTest, TellsOfEveryKernelThatIsMade) {
  std::atomic<int> made = 0;
  options_.on_made = [&](const KernelArtifact& kernel) { made += kernel.binary.empty() ? 100 : 1; };
  auto pool = MakePool();
  EXPECT_TRUE(RunJob(*pool, Job("ok")).ok());
  EXPECT_TRUE(RunJob(*pool, Job("ok")).ok());
  EXPECT_FALSE(RunJob(*pool, Job("error")).ok());
  EXPECT_EQ(made, 2);
}

TEST_F(WorkerPoolTest, AJobGivesACompleteArtifact) {
  auto pool = MakePool();
  CompileJob job = Job("ok");
  job.schedule = "schedule { }";
  CompileResult result = RunJob(*pool, job);
  ASSERT_TRUE(result.ok()) << result.status();
  const KernelArtifact& kernel = **result;
  EXPECT_EQ(kernel.key, job.key);
  EXPECT_EQ(kernel.full_key, job.full_key);
  EXPECT_EQ(kernel.binary, "binary of MatMul");
  EXPECT_EQ(kernel.content, Sha256(kernel.binary));
  EXPECT_EQ(kernel.source, "ok");
  EXPECT_EQ(kernel.schedule, "schedule { }");
  EXPECT_EQ(kernel.compiler, toolchain_.CommandText(job.isa, job.numerics));
  WorkerPoolStats stats = pool->Stats();
  EXPECT_EQ(stats.done, 1);
  EXPECT_EQ(stats.workers, 1);
  EXPECT_EQ(stats.isa, "avx2");
  EXPECT_EQ(stats.sandbox, "none");
}

TEST_F(WorkerPoolTest, TheCallbackHearsTheResult) {
  auto pool = MakePool();
  std::promise<std::string> heard;
  auto ticket = pool->Submit(
      Job("ok"), nullptr, [&](const CompileResult& result) { heard.set_value((*result)->binary); });
  ASSERT_TRUE(ticket.ok());
  EXPECT_EQ(heard.get_future().get(), "binary of MatMul");
}

TEST_F(WorkerPoolTest, AFailedCompileQuotesAndSavesItsLog) {
  auto pool = MakePool();
  CompileResult result = RunJob(*pool, Job("error"));
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(Message(result.status()),
            "compiling fk_1 (MatMul): g++ exited with 1: kernel.cc:3: error: no");
  std::string log = pool->logs().Read(Job("error").key).value();
  EXPECT_THAT(log, HasSubstr("kernel.cc:3: error: no"));
  EXPECT_THAT(log, HasSubstr("g++ (Fake) 99.1"));
  EXPECT_EQ(pool->Stats().failed, 1);
  EXPECT_EQ(pool->Stats().restarts, 0);
}

TEST_F(WorkerPoolTest, ACrashFailsOneJobAndTheWorkerIsReplaced) {
  auto pool = MakePool();
  CompileResult result = RunJob(*pool, Job("die"));
  EXPECT_EQ(result.status().code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(Message(result.status())),
              HasSubstr("worker failed in stage 'taking the job': killed by signal 11"));
  EXPECT_EQ(WorkersLostTo(result.status()), 2);
  EXPECT_TRUE(RunJob(*pool, Job("ok")).ok());
  WorkerPoolStats stats = pool->Stats();
  EXPECT_EQ(stats.crashed, 1);
  EXPECT_EQ(stats.retried, 1);
  EXPECT_EQ(stats.restarts, 2);
  EXPECT_EQ(stats.done, 1);
  EXPECT_EQ(logger_.LinesWith("worker_crashed").size(), 2u);
}

TEST_F(WorkerPoolTest, OnlyWorkersThatTheJobItselfKilledCount) {
  options_.job_limit = seconds(100);
  // Who answers nonsense ends with SIGKILL, as if an operator had sent it.
  for (const auto& [acts, lost] : std::vector<std::pair<std::vector<FakeAct>, int>>{
           {{FakeAct::kDie, FakeAct::kDie}, 2},
           {{FakeAct::kDie, FakeAct::kGarbage}, 1},
           {{FakeAct::kGarbage, FakeAct::kDie}, 1},
           {{FakeAct::kGarbage, FakeAct::kGarbage}, 0},
           {{FakeAct::kDie, FakeAct::kHang}, 2},
           {{FakeAct::kHang}, 1},
           {{FakeAct::kDie, FakeAct::kError}, 1},
           {{FakeAct::kError}, 0}}) {
    std::atomic<size_t> tries = 0;
    auto act = [&tries, acts = acts](const CompileJob&) { return acts[tries++]; };
    WorkerPool pool(options_, toolchain_, std::make_unique<FakeStarter>(act, &talk_), logger_,
                    clock_);
    const int hanging = talk_.hanging;
    auto ticket = pool.Submit(Job("ok")).value();
    if (acts.back() == FakeAct::kHang) {
      ASSERT_TRUE(Eventually([&] { return talk_.hanging > hanging; }));
      // Again and again: the worker may hang before the pool has looked at the clock.
      ASSERT_TRUE(Eventually([&] {
        clock_.Advance(seconds(101));
        return Done(*ticket);
      }));
    }
    const absl::Status status = ticket->Wait(CancelToken()).status();
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(WorkersLostTo(status), lost) << status;
    EXPECT_EQ(tries, acts.size());
  }
}

TEST_F(WorkerPoolTest, GarbageFromAWorkerFailsOneJob) {
  auto pool = MakePool();
  CompileResult result = RunJob(*pool, Job("garbage"));
  EXPECT_EQ(result.status().code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(Message(result.status())), HasSubstr("stage 'compile'"));
  EXPECT_THAT(std::string(Message(result.status())), HasSubstr("worker message: not one field"));
  EXPECT_TRUE(RunJob(*pool, Job("ok")).ok());
}

TEST_F(WorkerPoolTest, AHangingJobEndsAtItsLimit) {
  options_.job_limit = seconds(100);
  auto pool = MakePool();
  auto ticket = pool->Submit(Job("hang")).value();
  ASSERT_TRUE(Eventually([&] { return talk_.hanging == 1; }));
  ASSERT_TRUE(LooksAgain(2)) << "the limit counts from before the first look at what it says";
  clock_.Advance(seconds(99));
  ASSERT_TRUE(LooksAgain(2)) << "between two looks the pool looks at the clock";
  EXPECT_EQ(pool->Stats().running, 1);
  clock_.Advance(seconds(1));
  absl::Status status = ticket->Wait(CancelToken()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("killed after 100 s in stage 'compile'"));
  EXPECT_EQ(pool->Stats().timed_out, 1);
  EXPECT_TRUE(RunJob(*pool, Job("ok")).ok());
}

TEST_F(WorkerPoolTest, CancellingEndsQueuedAndRunningJobs) {
  auto pool = MakePool();
  auto running_cancel = std::make_shared<CancelToken>();
  auto queued_cancel = std::make_shared<CancelToken>();
  auto running = pool->Submit(Job("hang"), running_cancel).value();
  auto queued = pool->Submit(Job("ok"), queued_cancel).value();
  auto last = pool->Submit(Job("ok", "last")).value();
  ASSERT_TRUE(Eventually([&] { return pool->Stats().running == 1; }));
  EXPECT_EQ(pool->Stats().queued, 2);
  queued_cancel->Cancel();
  running_cancel->Cancel();
  CancelToken token;
  EXPECT_EQ(running->Wait(token).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(queued->Wait(token).status().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(last->Wait(token).ok());
  EXPECT_EQ(pool->Stats().cancelled, 2);
}

TEST_F(WorkerPoolTest, AnImpatientWaiterLeavesTheJobAlone) {
  auto pool = MakePool();
  auto cancel = std::make_shared<CancelToken>();
  auto ticket = pool->Submit(Job("hang"), cancel).value();
  EXPECT_FALSE(Done(*ticket));
  WorkerPoolStats stats = pool->Stats();
  EXPECT_EQ(stats.queued + stats.running, 1);
  EXPECT_EQ(stats.cancelled, 0);
  cancel->Cancel();
}

TEST_F(WorkerPoolTest, AFullQueueRefuses) {
  options_.queue_limit = 2;
  auto pool = MakePool();
  auto cancel = std::make_shared<CancelToken>();
  ASSERT_TRUE(pool->Submit(Job("hang"), cancel).ok());
  ASSERT_TRUE(Eventually([&] { return pool->Stats().running == 1; }));
  ASSERT_TRUE(pool->Submit(Job("ok")).ok());
  ASSERT_TRUE(pool->Submit(Job("ok")).ok());
  absl::Status full = pool->Submit(Job("ok")).status();
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Message(full),
            "server is busy: compile queue is full: 2 jobs wait for 1 workers; try again later");
  EXPECT_TRUE(RetryAfterOf(full).has_value());
  EXPECT_EQ(pool->Stats().rejected, 1);
  cancel->Cancel();
}

TEST_F(WorkerPoolTest, InAFullQueueJobsThatNobodyWantsGoFirstAndThenThoseOfWhoHasMost) {
  options_.queue_limit = 3;
  auto pool = MakePool();
  auto cancel = std::make_shared<CancelToken>();
  auto unwanted = std::make_shared<CancelToken>();
  ASSERT_TRUE(pool->Submit(Job("hang"), cancel, nullptr, {"greedy"}).ok());
  ASSERT_TRUE(Eventually([&] { return pool->Stats().running == 1; }));
  auto gone = pool->Submit(Job("ok", "1"), unwanted, nullptr, {"modest"}).value();
  auto first = pool->Submit(Job("ok", "2"), nullptr, nullptr, {"greedy"}).value();
  absl::Status told;
  auto second =
      pool->Submit(Job("ok", "3"), nullptr,
                   [&](const CompileResult& result) { told = result.status(); }, {"greedy"})
          .value();
  unwanted->Cancel();
  auto third = pool->Submit(Job("ok", "4"), nullptr, nullptr, {"greedy"}).value();
  ASSERT_TRUE(gone->IsDone());
  EXPECT_TRUE(absl::IsCancelled(gone->Wait(CancelToken()).status()));
  EXPECT_EQ(pool->Stats().rejected, 0);
  auto modest = pool->Submit(Job("ok", "5"), nullptr, nullptr, {"modest"}).value();
  ASSERT_TRUE(Done(*third)) << "the newest of greedy";
  const absl::Status why = third->Wait(CancelToken()).status();
  EXPECT_TRUE(absl::IsResourceExhausted(why) && RetryAfterOf(why).has_value()) << why;
  EXPECT_EQ(pool->Stats().rejected, 1);
  EXPECT_FALSE(pool->Submit(Job("ok", "6"), nullptr, nullptr, {"greedy"}).ok());
  cancel->Cancel();
  for (const auto& ticket : {first, second, modest}) {
    EXPECT_TRUE(ticket->Wait(CancelToken()).ok());
  }
  EXPECT_TRUE(told.ok());
}

TEST_F(WorkerPoolTest, StopDrainsWhatItHas) {
  options_.workers = 2;
  auto pool = MakePool();
  std::vector<std::shared_ptr<CompileTicket>> tickets;
  for (int i = 0; i < 50; ++i) tickets.push_back(pool->Submit(Job("ok", StrCat(i))).value());
  // A drain that never ends by itself: the clock stands still.
  pool->Stop(seconds(1));
  for (const auto& ticket : tickets) {
    ASSERT_TRUE(Done(*ticket));
    EXPECT_TRUE(ticket->Wait(CancelToken()).ok());
  }
  EXPECT_EQ(pool->Submit(Job("ok")).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(pool->Stats().workers, 0);
}

TEST_F(WorkerPoolTest, StopWithoutDrainEndsBusyAndQueuedJobs) {
  auto pool = MakePool();
  auto running = pool->Submit(Job("hang")).value();
  auto queued = pool->Submit(Job("ok")).value();
  ASSERT_TRUE(Eventually([&] { return pool->Stats().running == 1; }));
  pool->Stop(Nanoseconds(0));
  EXPECT_EQ(running->Wait(CancelToken()).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(queued->Wait(CancelToken()).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(WorkerPoolTest, WhereNoWorkerStartsJobsFailWithTheReasonUntilOneDoes) {
  for (const int workers : {1, 2}) {
    options_.workers = workers;
    talk_.broken = true;
    auto pool = MakePool();
    std::vector<std::shared_ptr<CompileTicket>> tickets;
    for (int i = 0; i < 5; ++i) tickets.push_back(pool->Submit(Job("ok", StrCat(i))).value());
    ASSERT_TRUE(AfterPauses([&] { return tickets.back()->IsDone(); }));
    for (const auto& ticket : tickets) {
      const absl::Status status = ticket->Wait(CancelToken()).status();
      EXPECT_TRUE(absl::IsUnavailable(status)) << status;
      EXPECT_THAT(std::string(Message(status)), HasSubstr("no worker starts: no such program"));
      EXPECT_EQ(WorkersLostTo(status), 0);
    }
    EXPECT_EQ(pool->Stats().crashed, 5);
    EXPECT_EQ(pool->Stats().retried, 0);
    talk_.broken = false;
    ASSERT_TRUE(AfterPauses([&] { return pool->Stats().workers == workers; }));
    EXPECT_TRUE(RunJob(*pool, Job("ok")).ok());
  }
}

TEST_F(WorkerPoolTest, ASlotThatCannotStartItsWorkerTakesNoJobs) {
  options_.workers = 2;
  std::atomic<bool> failed = false;
  talk_.on_start = [&](int slot) {
    if (slot == 0) return absl::OkStatus();
    failed = true;
    return absl::Status(Unavailable("no more processes"));
  };
  auto pool = MakePool();
  ASSERT_TRUE(Eventually([&] { return failed.load(); }));
  std::vector<std::shared_ptr<CompileTicket>> tickets;
  for (int i = 0; i < 100; ++i) {
    tickets.push_back(pool->Submit(Job("ok", StrCat(i))).value());
    clock_.Advance(seconds(1));  // it tries again and again meanwhile
  }
  for (const auto& ticket : tickets) {
    const absl::Status status = ticket->Wait(CancelToken()).status();
    EXPECT_TRUE(status.ok()) << status;
  }
  EXPECT_EQ(pool->Stats().done, 100);
  EXPECT_EQ(pool->Stats().retried, 0);
}

TEST_F(WorkerPoolTest, AJobWhoseSecondWorkerDoesNotStartGoesToAnotherSlot) {
  options_.workers = 2;
  std::atomic<int> starts = 0;
  talk_.on_start = [&](int) {
    return ++starts <= 2 ? absl::OkStatus() : absl::Status(Unavailable("no more processes"));
  };
  std::atomic<int> tries = 0;
  auto act = [&](const CompileJob&) { return ++tries == 1 ? FakeAct::kDie : FakeAct::kCompile; };
  WorkerPool pool(options_, toolchain_, std::make_unique<FakeStarter>(act, &talk_), logger_,
                  clock_);
  ASSERT_TRUE(Eventually([&] { return pool.Stats().workers == 2; }));
  CompileResult result = RunJob(pool, Job("ok"));
  EXPECT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(tries, 2);
  EXPECT_EQ(pool.Stats().retried, 1);
}

TEST_F(WorkerPoolTest, AStartThatFailsIsNoWorkerThatTheJobKilled) {
  std::atomic<int> starts = 0;
  talk_.on_start = [&](int) {
    return ++starts == 1 ? absl::OkStatus() : absl::Status(Unavailable("no more processes"));
  };
  auto pool = MakePool();
  ASSERT_TRUE(Eventually([&] { return pool->Stats().workers == 1; }));
  auto ticket = pool->Submit(Job("die")).value();
  ASSERT_TRUE(AfterPauses([&] { return ticket->IsDone(); }));
  const absl::Status status = ticket->Wait(CancelToken()).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(Message(status)),
              testing::AllOf(HasSubstr("no more processes"), HasSubstr("killed by signal 11")));
  EXPECT_EQ(WorkersLostTo(status), 1) << "the first";
  EXPECT_EQ(pool->Stats().restarts, 0);
}

TEST_F(WorkerPoolTest, PausesBetweenStartsThatFailGrow) {
  Mutex mutex;
  std::vector<Nanoseconds> times;
  talk_.on_start = [&](int) {
    MutexLock lock(&mutex);
    times.push_back(clock_.Now());
    return absl::Status(Unavailable("no more processes"));
  };
  auto pool = MakePool();
  ASSERT_TRUE(Eventually([&] {
    clock_.Advance(milliseconds(25));
    MutexLock lock(&mutex);
    return times.size() >= 10;
  }));
  pool.reset();
  for (size_t i = 1; i < times.size(); ++i) {
    const Nanoseconds least = std::min<Nanoseconds>(milliseconds(50) * (1 << (i - 1)), seconds(5));
    EXPECT_GE(times[i] - times[i - 1], least) << i;
  }
}

TEST_F(WorkerPoolTest, StopDoesNotWaitForAPauseToEnd) {
  talk_.broken = true;
  auto pool = MakePool();
  ASSERT_TRUE(Eventually([&] { return !logger_.LinesWith("worker_not_started").empty(); }));
  auto ticket = pool->Submit(Job("ok")).value();
  pool->Stop(Nanoseconds(0));  // the clock stands still
  EXPECT_TRUE(absl::IsUnavailable(ticket->Wait(CancelToken()).status()));
}

TEST_F(WorkerPoolTest, WorkersAreReplacedAfterTheirShareOfJobs) {
  options_.jobs_per_worker = 3;
  auto pool = MakePool();
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(RunJob(*pool, Job("ok", StrCat(i))).ok());
  EXPECT_TRUE(Eventually([&] { return pool->Stats().restarts == 3; }));
  EXPECT_EQ(pool->Stats().crashed, 0);
}

TEST_F(WorkerPoolTest, AnIsaTheCompilerLacksIsRefusedAtOnce) {
  tools_.on_compile = [](const Command& command) {
    CommandResult result;
    bool avx = std::find(command.argv.begin(), command.argv.end(), "-mavx2") != command.argv.end();
    result.exit_code = avx ? 1 : 0;
    return result;
  };
  toolchain_ = Toolchain::Open(FakeToolchainOptions(), tools_).value();
  auto pool = MakePool();
  CompileJob job = Job("ok");
  job.isa = Isa::kAvx2;
  EXPECT_EQ(pool->Submit(job).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(WorkerPoolTest, ManySubmittersManyFailures) {
  options_.workers = 3;
  auto pool = MakePool();
  std::vector<std::thread> submitters;
  std::atomic<int> ok{0};
  std::atomic<int> failed{0};
  for (int t = 0; t < 4; ++t) {
    submitters.emplace_back([&, t] {
      const char* kinds[] = {"ok", "ok", "error", "die", "garbage"};
      for (int i = 0; i < 25; ++i) {
        CompileResult result = RunJob(*pool, Job(kinds[(i + t) % 5], StrCat(t, "/", i)));
        ++(result.ok() ? ok : failed);
      }
    });
  }
  for (std::thread& submitter : submitters) submitter.join();
  EXPECT_EQ(ok, 40);
  EXPECT_EQ(failed, 60);
  WorkerPoolStats stats = pool->Stats();
  EXPECT_EQ(stats.done, 40);
  EXPECT_EQ(stats.failed, 20);
  EXPECT_EQ(stats.crashed, 40);
  EXPECT_EQ(stats.retried, 40);
  EXPECT_EQ(stats.running, 0);
}

TEST_F(WorkerPoolTest, TheCompilerMayUseAllOfItsTime) {
  options_.command_limit = milliseconds(89500);
  std::promise<WorkerJob> given;
  talk_.on_job = [&](const WorkerJob& work) { given.set_value(work); };
  auto pool = MakePool();
  ASSERT_TRUE(RunJob(*pool, Job("ok")).ok());
  WorkerJob work = given.get_future().get();
  EXPECT_EQ(work.command_limit, milliseconds(89500));
  EXPECT_EQ(work.limits.cpu_seconds, 91) << "what watches the time says what happened";
}

TEST(CompileLogs, KeepsTheNewest) {
  TempDir dir = TempDir::Create(testing::TempDir(), "logs-").value();
  CompileLogs logs(dir.path() + "/sub", 3);
  for (int i = 0; i < 6; ++i) {
    Digest key = Sha256(StrCat(i));
    ASSERT_TRUE(logs.Save(key, StrCat("log ", i)).ok());
    // However coarse the clock of the file system is.
    std::filesystem::last_write_time(
        StrCat(dir.path(), "/sub/", key.ToHex(), ".log"),
        std::filesystem::file_time_type::clock::now() - seconds(100 - i));
  }
  EXPECT_FALSE(logs.Read(Sha256("2")).ok());
  EXPECT_EQ(logs.Read(Sha256("3")).value(), "log 3");
  EXPECT_EQ(logs.Read(Sha256("5")).value(), "log 5");
  CompileLogs nowhere("", 3);
  EXPECT_TRUE(nowhere.Save(Sha256("1"), "x").ok());
  EXPECT_EQ(nowhere.Read(Sha256("1")).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(WorkerPoolTest, ARaceHasTheTimeThatIsLeftWhenAWorkerBegins) {
  std::atomic<int64_t> limit_ms{0};
  talk_.on_race = [&](const KernelRace& race) {
    limit_ms = race.limit / milliseconds(1);
    return RaceTimes();
  };
  auto pool = MakePool();
  auto run = [&](Nanoseconds left) {
    limit_ms = 0;
    auto token = std::make_shared<CancelToken>(clock_, clock_.Now() + left);
    KernelRace race{.label = "MatMul", .backend = "cpu", .runners = {}, .limit = seconds(10)};
    return pool->SubmitRace(race, token).value()->Wait(CancelToken()).status();
  };
  EXPECT_TRUE(run(seconds(60)).ok());
  EXPECT_EQ(limit_ms, 10000);
  EXPECT_TRUE(run(seconds(3)).ok());
  EXPECT_EQ(limit_ms, (seconds(3) - kRaceWayBack) / milliseconds(1));
  EXPECT_TRUE(absl::IsDeadlineExceeded(run(kRaceWayBack)));
  EXPECT_EQ(limit_ms, 0) << "it would not be back in time";
}

}  // namespace
}  // namespace fusion
