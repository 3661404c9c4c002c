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
  /// Wall clock of one job: compiling, linking, checking. Then its worker is killed.
  Nanoseconds job_limit = std::chrono::seconds(60);
  /// Wall clock of the compiler, and of the linker.
  Nanoseconds command_limit = std::chrono::seconds(30);
  /// Of the compiler and of the linker; cpu_seconds is made of command_limit.
  ProcessLimits command_limits = {
      .memory_bytes = int64_t{2} << 30, .file_bytes = int64_t{64} << 20, .open_files = 256};
  /// What is kept of the compiler's output.
  int64_t log_bytes = 64 << 10;
  /// Where the logs of failed jobs are saved, by key. Empty: nowhere.
  std::string log_dir;
  size_t log_files = 256;
  /// A worker is replaced after so many jobs, so that whatever leaks stays bounded.
  int jobs_per_worker = 1000;
  /// Told of every kernel that is made, on a thread of the pool; must not block. May be empty.
  std::function<void(const KernelArtifact&)> on_made;
};

/// Counters start at 0 with the pool.
struct WorkerPoolStats {
  int64_t queued = 0;
  int64_t running = 0;
  int64_t workers = 0;        // alive now
  int64_t done = 0;           // jobs that gave a kernel
  int64_t failed = 0;         // did not compile, or the check refused the kernel
  int64_t timed_out = 0;      // ran into command_limit or job_limit
  int64_t out_of_memory = 0;  // the compiler or the linker ran into command_limits.memory_bytes
  int64_t crashed = 0;        // two workers died over the job, or talked nonsense; or none starts
  int64_t retried = 0;        // one did, and the job was given to another
  int64_t cancelled = 0;
  int64_t rejected = 0;      // queue full: refused by Submit, or put out of it for another tenant
  int64_t races = 0;         // that were run, or found not to be for this machine
  int64_t races_failed = 0;  // however they did
  int64_t restarts = 0;      // workers started beyond the first of each slot
  std::string sandbox;       // level the workers run under; empty before the first has said so
  std::string isa;           // level of the machine the checks run on
};

using CompileResult = absl::StatusOr<std::shared_ptr<const KernelArtifact>>;

/// A submitted job. Thread-safe.
class CompileTicket {
 public:
  /// The job's result; kCancelled or kDeadlineExceeded if `waiter` ends first, which leaves the job
  /// alone. Calls `meanwhile` (may be empty) now and then while it waits.
  CompileResult Wait(const CancelToken& waiter,
                     const std::function<void()>& meanwhile = nullptr) const {
    return result_.Wait(waiter, meanwhile);
  }
  bool IsDone() const { return result_.IsSet(); }
  /// Whose the kernel is, where tenants are kept apart.
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

/// How many workers a failed job cost, 0 to 2: those that crashed in it, and one that the pool
/// killed because it hung, or started or wrote too much. One that was killed from outside (SIGKILL,
/// SIGTERM: an operator, a machine without memory) does not count: the kernel need not be why.
int WorkersLostTo(const absl::Status& status);

/// Compiles kernels in a fixed number of worker processes, and times them there.
///
///   WorkerPool pool(options, toolchain, MakeWorkerStarter(paths), logger);
///   ASSIGN_OR_RETURN(auto ticket, pool.Submit(job));
///   ASSIGN_OR_RETURN(auto kernel, ticket->Wait(cancel));
///
/// A worker that crashes, hangs or talks nonsense is replaced. A job that hangs fails with
/// DeadlineExceeded; one that starts too many processes or fills its directory, with Internal. One
/// whose worker dies is tried once more, because that may be anybody's doing (an operator, a
/// machine without memory); the second time it fails with Aborted. A kernel that does not compile
/// or that the check refuses fails with Internal; the message quotes the log. A slot whose worker
/// does not start takes no jobs and tries again after a while, ever longer, up to 5 s; where no
/// slot has a worker and a second try fails too, what waits fails with Unavailable and the reason.
/// Workers are shared fairly between the owners of jobs (FairQueue). Equal jobs are not merged:
/// that is up to the caller. Thread-safe. `toolchain`, `logger` and `clock` outlive the pool.
class WorkerPool {
 public:
  WorkerPool(WorkerPoolOptions options, const Toolchain& toolchain,
             std::unique_ptr<WorkerStarter> starter, Logger& logger,
             const Clock& clock = Clock::Real());
  /// Stop(0).
  ~WorkerPool();

  /// Queues a job. `cancel` (may be null) ends it early, wherever it is: its worker is killed if
  /// need be. `on_done` (may be empty) gets the result on any thread, and must not block or call
  /// the pool. FailedPrecondition: the compiler does not know the ISA, or there is none now.
  /// ResourceExhausted, with kRetryAfter: the queue is full; so ends a job later that had to give
  /// its place to one of a tenant with fewer, unless `may_go` (may be empty; quick, any thread)
  /// says no. Unavailable: stopped.
  absl::StatusOr<std::shared_ptr<CompileTicket>> Submit(
      CompileJob job, std::shared_ptr<const CancelToken> cancel = nullptr,
      std::function<void(const CompileResult&)> on_done = nullptr, const WorkOwner& owner = {},
      std::function<bool()> may_go = nullptr);

  /// Queues a race, which waits for a worker as jobs do; others may be busy meanwhile. `cancel` as
  /// above; its deadline also bounds KernelRace::limit from when a worker begins with it, so that
  /// what is measured by then comes back. ResourceExhausted, Unavailable: as above.
  absl::StatusOr<std::shared_ptr<RaceTicket>> SubmitRace(
      KernelRace race, std::shared_ptr<const CancelToken> cancel = nullptr);

  /// Takes no more jobs and gives those it has `drain` to end; then they fail with Unavailable and
  /// the workers are killed. Returns when everything has ended. A second call returns at once.
  void Stop(Nanoseconds drain);

  WorkerPoolStats Stats() const;

  /// Logs of failed jobs.
  const CompileLogs& logs() const { return logs_; }

 private:
  // How late a cancellation, a limit or Stop may be noticed; answers of a worker wake up at once.
  static constexpr Nanoseconds kSlice = std::chrono::milliseconds(20);
  // For a worker that hung up to die of its own signal, so that the message can name it.
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
    std::function<bool()> may_go = nullptr;  // empty: it may
    absl::Status first_try = {};             // what became of it; OK: there was none
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
    bool replaced = false;  // for the toolchain's sake, since the last job
    bool started_before = false;
    int failed_starts = 0;  // one after the other, up to now
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
  // Waits for one; nullopt: the slot's work is over.
  std::optional<Task> Next(Slot* slot);
  std::optional<Task> Take(Slot* slot);
  void Execute(Task task, Slot* slot);
  void GiveBack(Task task);
  void FailWaiting(const absl::Status& why);
  void Pause(const Slot& slot);
  TaskResult Run(const Task& task, Slot* slot, Outcome* outcome);
  TaskResult Converse(const Task& task, Slot* slot, Outcome* outcome);
  // An error, and *outcome, if the worker has to end over its task, which is in `stage`. Looks at
  // what it uses from time to time: `next_look`.
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
  // Tells those who wait for it.
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
  // How often files of the toolchain were found missing. What comes back in their place is unknown
  // to workers that are older: they may read files, not names.
  std::atomic<int64_t> toolchain_losses_{0};

  mutable Mutex mutex_;
  CondVar changed_;
  // For slots that cannot serve now: on changed_ they would take the news of a job from others.
  CondVar ending_;
  FairQueue<Task> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool aborting_ ABSL_GUARDED_BY(mutex_) = false;
  int able_ ABSL_GUARDED_BY(mutex_);  // slots that serve, and whose last start did not fail
  WorkerPoolStats stats_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusion
