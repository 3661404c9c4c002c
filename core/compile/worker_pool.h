#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "core/base/logging.h"
#include "core/base/threads/cancel.h"
#include "core/base/threads/fair_queue.h"
#include "core/base/threads/mutex.h"
#include "core/base/threads/result_cell.h"
#include "core/base/trace.h"
#include "core/bundle/plan.h"
#include "core/compile/compile_logs.h"
#include "core/compile/toolchain.h"
#include "core/compile/worker_process.h"
#include "core/compile/worker_protocol.h"

namespace fusion {

struct WorkerPoolOptions {
  int workers = 1;
  /// Jobs that may wait while all workers are busy.
  size_t queue_limit = 256;
  /// Wall clock of one job: compiling, linking, checking. After that its worker is killed.
  Nanoseconds job_limit = std::chrono::seconds(60);
  /// Wall clock of each command: the compiler and the linker.
  Nanoseconds command_limit = std::chrono::seconds(30);
  /// Limits of each command; cpu_seconds follows from command_limit.
  ProcessLimits command_limits = {
      .memory_bytes = int64_t{2} << 30, .file_bytes = int64_t{64} << 20, .open_files = 256};
  /// Bytes of compiler output that are kept.
  int64_t log_bytes = 64 << 10;
  /// Directory of the logs of failed jobs, named by key. Empty: not saved.
  std::string log_dir;
  size_t log_files = 256;
  /// A worker is replaced after this many jobs, to bound leaks.
  int jobs_per_worker = 1000;
  /// Called for every finished kernel, on a thread of the pool; must not block. May be empty.
  std::function<void(const KernelArtifact&)> on_made;
};

/// Counters start at 0 with the pool.
struct WorkerPoolStats {
  int64_t queued = 0;
  int64_t running = 0;
  int64_t workers = 0;        // alive now
  int64_t done = 0;           // jobs that produced a kernel
  int64_t failed = 0;         // the kernel did not compile or failed its check
  int64_t timed_out = 0;      // exceeded command_limit or job_limit
  int64_t out_of_memory = 0;  // a command exceeded command_limits.memory_bytes
  int64_t crashed = 0;        // two workers died or sent invalid messages; or no worker starts
  int64_t retried = 0;        // jobs that were tried again after a worker was lost
  int64_t cancelled = 0;
  int64_t rejected = 0;      // queue full: refused by Submit, or displaced by another tenant
  int64_t races = 0;         // that were run, or refused by the worker's machine
  int64_t races_failed = 0;  // for any reason
  int64_t restarts = 0;      // workers started beyond the first of each slot
  std::string sandbox;       // level of the workers; empty until the first has reported it
  std::string isa;           // ISA level of the machine that runs the checks
};

using CompileResult = absl::StatusOr<std::shared_ptr<const KernelArtifact>>;

/// A submitted job. Thread-safe.
class CompileTicket {
 public:
  /// The job's result; kCancelled or kDeadlineExceeded if `waiter` ends first, which does not
  /// affect the job. Calls `meanwhile` (may be empty) periodically while it waits.
  CompileResult Wait(const CancelToken& waiter,
                     const std::function<void()>& meanwhile = nullptr) const {
    return result_.Wait(waiter, meanwhile);
  }
  bool IsDone() const { return result_.IsSet(); }
  /// Tenant of the kernel, if tenants are isolated; else empty.
  const std::string& tenant() const { return tenant_; }

 private:
  friend class WorkerPool;
  std::string tenant_;
  ResultCell<std::shared_ptr<const KernelArtifact>> result_;
};

using RaceResult = absl::StatusOr<std::shared_ptr<const RaceTimes>>;

/// A submitted race. Thread-safe.
class RaceTicket {
 public:
  /// As CompileTicket::Wait.
  RaceResult Wait(const CancelToken& waiter) const { return result_.Wait(waiter); }
  bool IsDone() const { return result_.IsSet(); }

 private:
  friend class WorkerPool;
  ResultCell<std::shared_ptr<const RaceTimes>> result_;
};

/// Number of workers that a failed job killed, 0 to 2: those that crashed in it, and those that the
/// pool killed because they hung, or started or wrote too much. A worker that was killed from
/// outside (SIGKILL, SIGTERM: an operator, a machine without memory) does not count, because the
/// kernel need not be the cause.
int WorkersLostTo(const absl::Status& status);

/// Compiles, checks and times kernels in a fixed number of worker processes.
///
///   WorkerPool pool(options, toolchain, MakeWorkerStarter(paths), logger);
///   ASSIGN_OR_RETURN(auto ticket, pool.Submit(job));
///   ASSIGN_OR_RETURN(auto kernel, ticket->Wait(cancel));
///
/// A worker that crashes, hangs or sends invalid messages is replaced. Errors of a job:
///
/// - DeadlineExceeded: it hung.
/// - Internal: the kernel does not compile or fails its check (the message quotes the log), or the
///   job started too many processes or filled its directory.
/// - Aborted: its worker died twice. After the first time the job is tried once more, because the
///   cause may lie elsewhere (an operator, a machine without memory).
/// - Unavailable, with the reason: no slot has a worker, and a second start failed too; or the pool
///   stopped.
///
/// A slot whose worker does not start takes no jobs and retries after growing pauses of up to 5 s.
/// Workers are shared fairly between the owners of jobs (FairQueue). Equal jobs are not merged;
/// callers do that. Thread-safe. `toolchain`, `logger` and `clock` outlive the pool.
class WorkerPool {
 public:
  WorkerPool(WorkerPoolOptions options, const Toolchain& toolchain,
             std::unique_ptr<WorkerStarter> starter, Logger& logger,
             const Clock& clock = Clock::Real());
  /// Calls Stop(0).
  ~WorkerPool();

  /// Queues a job. `cancel` (may be null) ends it early, queued or running; a running worker is
  /// killed if necessary. `on_done` (may be empty) gets the result on any thread; it must not block
  /// or call the pool.
  ///
  /// FailedPrecondition: the compiler does not know the ISA, or is missing now. Unavailable:
  /// stopped. ResourceExhausted, with kRetryAfter: the queue is full. A queued job also ends with
  /// ResourceExhausted if a tenant with fewer jobs displaces it, unless `may_go` (may be empty;
  /// quick, any thread) returns false.
  absl::StatusOr<std::shared_ptr<CompileTicket>> Submit(
      CompileJob job, std::shared_ptr<const CancelToken> cancel = nullptr,
      std::function<void(const CompileResult&)> on_done = nullptr, const WorkOwner& owner = {},
      std::function<bool()> may_go = nullptr);

  /// Queues a race, which waits for a worker as jobs do; other workers may be busy meanwhile.
  /// `cancel` as in Submit. If it has a deadline, KernelRace::limit is reduced to the time that is
  /// left when a worker starts the race, minus kRaceWayBack: then partial measurements arrive
  /// before the deadline. If no time is left, the result is DeadlineExceeded. Errors of this call:
  /// ResourceExhausted and Unavailable, as Submit.
  absl::StatusOr<std::shared_ptr<RaceTicket>> SubmitRace(
      KernelRace race, std::shared_ptr<const CancelToken> cancel = nullptr);

  /// Accepts no more jobs and lets accepted ones run for `drain`; then they fail with Unavailable
  /// and the workers are killed. Returns when everything has ended. A second call returns at once.
  void Stop(Nanoseconds drain);

  WorkerPoolStats Stats() const;

  /// Logs of failed jobs.
  const CompileLogs& logs() const { return logs_; }

 private:
  // Polling interval for cancellations, limits and Stop; replies of a worker wake up at once.
  static constexpr Nanoseconds kSlice = std::chrono::milliseconds(20);
  // Time for a worker that closed its channel to die of its own signal, so that the message can
  // name it.
  static constexpr Nanoseconds kCrashGrace = std::chrono::milliseconds(500);

  // A job, or a race.
  struct Task {
    CompileJob job;
    std::shared_ptr<const CancelToken> cancel;
    std::function<void(const CompileResult&)> on_done;
    std::shared_ptr<CompileTicket> ticket;
    std::shared_ptr<const KernelRace> race = nullptr;
    std::shared_ptr<RaceTicket> race_ticket = nullptr;
    WorkOwner owner = {};
    std::function<bool()> may_go = nullptr;  // empty: it may be displaced
    absl::Status first_try = {};             // its status; OK: there was none
    std::string trace = ScopedTrace::Current();

    std::string Name() const;
  };
  using TaskResult = absl::StatusOr<
      std::variant<std::shared_ptr<const KernelArtifact>, std::shared_ptr<const RaceTimes>>>;
  // One worker and the thread that talks to it.
  struct Slot {
    int index = 0;
    std::unique_ptr<WorkerProcess> worker;
    int jobs = 0;
    int64_t losses = 0;     // toolchain_losses_ when the worker started
    bool replaced = false;  // because of toolchain_losses_, since the last job
    bool started_before = false;
    int failed_starts = 0;  // in a row, up to now
  };
  enum class Outcome : uint8_t {
    kDone,
    kFailed,
    kTimedOut,
    kOutOfMemory,
    kCrashed,
    kCancelled,
    kStopped
  };

  void ServeSlot(int index);
  // Waits for a task; nullopt: the slot has to end.
  std::optional<Task> Next(Slot* slot);
  std::optional<Task> Take(Slot* slot);
  void Execute(Task task, Slot* slot);
  void GiveBack(Task task);
  void FailWaiting(const absl::Status& why);
  void Pause(const Slot& slot);
  TaskResult Run(const Task& task, Slot* slot, Outcome* outcome);
  TaskResult Converse(const Task& task, Slot* slot, Outcome* outcome);
  // An error, and *outcome, if the worker must be stopped in stage `stage` of its task. Checks its
  // resource use at intervals: `next_look` is the next time.
  absl::Status WhyStop(const Task& task, std::string_view stage, Nanoseconds deadline,
                       Nanoseconds* next_look, Slot* slot, Outcome* outcome);
  absl::Status WorkerKilled(const Task& task, absl::Status why);
  TaskResult Conclude(const Task& task, const WorkerResult& result, Outcome* outcome);
  static TaskResult Conclude(const Task& task, const WorkerRaceResult& result, Outcome* outcome);
  std::string MessageOf(const Task& task) const;
  Nanoseconds LimitOf(const Task& task) const;
  TaskResult Crashed(const Task& task, std::string_view stage, std::string_view why, Slot* slot);
  absl::Status EnsureWorker(Slot* slot);
  absl::Status StartWorker(Slot* slot);
  absl::Status ReadHello(WorkerProcess* worker);
  std::string EndWorker(Slot* slot, Nanoseconds grace);
  void Finish(const Task& task, TaskResult result, Outcome outcome);
  // Passes the result to the waiters.
  void Answer(const Task& task, TaskResult result);
  void Count(const Task& task, Outcome outcome) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountJob(Outcome outcome) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Enqueue(Task task);
  std::vector<FairQueue<Task>::Taken> MakeRoom(const WorkOwner& arriving)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static absl::Status StillWanted(const Task& task);
  void SaveLog(const Task& task, std::string_view message, std::string_view log);
  bool Aborting() const;
  absl::Status CheckToolchain();

  const WorkerPoolOptions options_;
  const Toolchain& toolchain_;
  const std::unique_ptr<WorkerStarter> starter_;
  Logger& logger_;
  const Clock& clock_;
  CompileLogs logs_;
  // Number of times that toolchain files were missing. A worker that is older than the last loss is
  // replaced: in its sandbox the files that were put back may be unreadable, because rules name
  // files, not paths.
  std::atomic<int64_t> toolchain_losses_{0};

  mutable Mutex mutex_;
  CondVar changed_;
  // For slots that cannot serve now: waiting on changed_, they would consume notifications of jobs.
  CondVar ending_;
  FairQueue<Task> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool aborting_ ABSL_GUARDED_BY(mutex_) = false;
  int able_ ABSL_GUARDED_BY(mutex_);  // slots that serve and whose last start succeeded
  WorkerPoolStats stats_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusion
