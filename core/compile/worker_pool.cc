#include "core/compile/worker_pool.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/kernel_abi.h"
#include "core/base/key_field.h"
#include "core/base/threads/named_thread.h"
#include "core/base/threads/retry_after.h"

namespace fusion {
namespace {

// Only bounds the wait of an idle thread; work and Stop() notify.
constexpr Nanoseconds kIdleSlice = std::chrono::seconds(1);
// A worker needs a few milliseconds to start and to take a job.
constexpr Nanoseconds kHelloLimit = std::chrono::seconds(10);
// Pauses between failed starts of a slot's worker: the cause (a full disk, too many processes) may
// pass soon, and each attempt costs a process or a directory walk.
constexpr Nanoseconds kFirstStartPause = std::chrono::milliseconds(50);
constexpr Nanoseconds kLongestStartPause = std::chrono::seconds(5);
constexpr int kStartDoublings = 7;

}  // namespace

// "compiling fk_12 (MatMul)".
std::string WorkerPool::Task::Name() const {
  if (race == nullptr) return StrCat("compiling ", job.symbol, " (", job.label, ")");
  return StrCat("timing ", race->runners.size(), " kernels (", race->label, ")");
}

WorkerPool::WorkerPool(WorkerPoolOptions options, const Toolchain& toolchain,
                       std::unique_ptr<WorkerStarter> starter, Logger& logger, const Clock& clock)
    : options_(std::move(options)),
      toolchain_(toolchain),
      starter_(std::move(starter)),
      logger_(logger),
      clock_(clock),
      logs_(options_.log_dir, options_.log_files),
      able_(options_.workers) {
  MutexLock lock(&mutex_);
  for (int i = 0; i < options_.workers; ++i) {
    threads_.push_back(NamedThread(StrCat("compile-", i), [this, i] { ServeSlot(i); }));
  }
}

WorkerPool::~WorkerPool() { Stop(Nanoseconds(0)); }

absl::Status WorkerPool::Enqueue(Task task) {
  const WorkOwner owner = task.owner;
  std::vector<FairQueue<Task>::Taken> gone;
  absl::Status accepted;
  {
    MutexLock lock(&mutex_);
    if (stopping_) return Unavailable("compile workers are stopped");
    if (queue_.size() >= options_.queue_limit) gone = MakeRoom(owner);
    if (queue_.size() < options_.queue_limit) {
      queue_.Push(owner, std::move(task));
      changed_.NotifyOne();
    } else {
      ++stats_.rejected;
      accepted = ServerBusy("compile queue is full: ", queue_.size(), " jobs wait for ",
                            options_.workers, " workers");
    }
  }
  for (const FairQueue<Task>::Taken& taken : gone) {
    const absl::Status wanted = StillWanted(taken.item);
    const absl::Status busy = ServerBusy(
        taken.item.Name(), ": its place in the compile queue went to a tenant with fewer jobs");
    Answer(taken.item, wanted.ok() ? AfterTry(taken.item.first_try, busy) : wanted);
  }
  return accepted;
}

// Removes cancelled jobs first; else the newest job of the tenant with the most jobs.
std::vector<FairQueue<WorkerPool::Task>::Taken> WorkerPool::MakeRoom(const WorkOwner& arriving) {
  std::vector<FairQueue<Task>::Taken> gone =
      queue_.TakeIf([](const Task& task) { return !StillWanted(task).ok(); });
  stats_.cancelled += static_cast<int64_t>(gone.size());
  if (queue_.size() < options_.queue_limit) return gone;
  std::optional<FairQueue<Task>::Taken> victim = queue_.Displace(arriving, [](const Task& task) {
    return task.race == nullptr && (!task.may_go || task.may_go());
  });
  if (!victim.has_value()) return gone;
  ++stats_.rejected;
  gone.push_back(*std::move(victim));
  return gone;
}

absl::Status WorkerPool::StillWanted(const Task& task) {
  return task.cancel == nullptr ? absl::OkStatus() : task.cancel->Check();
}

absl::StatusOr<std::shared_ptr<CompileTicket>> WorkerPool::Submit(
    CompileJob job, std::shared_ptr<const CancelToken> cancel,
    std::function<void(const CompileResult&)> on_done, const WorkOwner& owner,
    std::function<bool()> may_go) {
  RETURN_IF_ERROR(toolchain_.SupportsIsa(job.isa));
  RETURN_IF_ERROR(CheckToolchain());
  auto ticket = std::make_shared<CompileTicket>();
  ticket->tenant_ = TenantOfKey(job.full_key);
  RETURN_IF_ERROR(Enqueue({.job = std::move(job),
                           .cancel = std::move(cancel),
                           .on_done = std::move(on_done),
                           .ticket = ticket,
                           .owner = owner,
                           .may_go = std::move(may_go)}));
  return ticket;
}

absl::StatusOr<std::shared_ptr<RaceTicket>> WorkerPool::SubmitRace(
    KernelRace race, std::shared_ptr<const CancelToken> cancel) {
  auto ticket = std::make_shared<RaceTicket>();
  RETURN_IF_ERROR(Enqueue({.job = {},
                           .cancel = std::move(cancel),
                           .on_done = nullptr,
                           .ticket = nullptr,
                           .race = std::make_shared<const KernelRace>(std::move(race)),
                           .race_ticket = ticket}));
  return ticket;
}

void WorkerPool::Stop(Nanoseconds drain) {
  std::vector<std::thread> threads;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    threads.swap(threads_);
    changed_.NotifyAll();
    ending_.NotifyAll();
    Nanoseconds deadline = clock_.Now() + drain;
    while (!threads.empty() && (queue_.size() > 0 || stats_.running > 0) &&
           clock_.Now() < deadline) {
      changed_.WaitFor(&mutex_, kSlice);
    }
    aborting_ = true;
    changed_.NotifyAll();
    ending_.NotifyAll();
  }
  for (std::thread& thread : threads) thread.join();
}

WorkerPoolStats WorkerPool::Stats() const {
  MutexLock lock(&mutex_);
  WorkerPoolStats stats = stats_;
  stats.queued = static_cast<int64_t>(queue_.size());
  return stats;
}

bool WorkerPool::Aborting() const {
  MutexLock lock(&mutex_);
  return aborting_;
}

void WorkerPool::ServeSlot(int index) {
  Slot slot;
  slot.index = index;
  while (std::optional<Task> task = Next(&slot)) Execute(*std::move(task), &slot);
  EndWorker(&slot, Nanoseconds(0));
  MutexLock lock(&mutex_);
  if (slot.failed_starts == 0) --able_;
}

// Starts the worker before it takes a job: a job does not wait for a process to start, and a slot
// that cannot start one does not fail jobs faster than other slots complete them.
std::optional<WorkerPool::Task> WorkerPool::Next(Slot* slot) {
  for (;;) {
    if (slot->failed_starts > 0) Pause(*slot);
    const absl::Status ready = EnsureWorker(slot);
    if (ready.ok()) {
      std::optional<Task> task = Take(slot);
      if (task.has_value()) return task;
    } else if (slot->failed_starts > 1) {  // one may be a moment's doing
      FailWaiting(ready);
    }
    MutexLock lock(&mutex_);
    if (stopping_ && queue_.size() == 0) return std::nullopt;
  }
}

// nullopt: no task remains, or a new worker must be started first.
std::optional<WorkerPool::Task> WorkerPool::Take(Slot* slot) {
  {
    MutexLock lock(&mutex_);
    while (queue_.size() == 0 && !stopping_) changed_.WaitFor(&mutex_, kIdleSlice);
    // Only now, with a job that came after it, is the toolchain back.
    // Once for each job: while the toolchain is away it may be lost again with every look.
    if (slot->losses == toolchain_losses_ || slot->replaced || aborting_) {
      slot->replaced = false;
      std::optional<FairQueue<Task>::Taken> next = queue_.Pop();
      if (!next.has_value()) return std::nullopt;
      ++stats_.running;
      return std::move(next->item);
    }
  }
  EndWorker(slot, Nanoseconds(0));
  slot->replaced = true;
  return std::nullopt;
}

void WorkerPool::Pause(const Slot& slot) {
  const int doublings = std::min(slot.failed_starts - 1, kStartDoublings);
  const Nanoseconds end =
      clock_.Now() + std::min(kFirstStartPause * (1 << doublings), kLongestStartPause);
  MutexLock lock(&mutex_);
  while (!aborting_ && !(stopping_ && queue_.size() == 0) && clock_.Now() < end) {
    ending_.WaitFor(&mutex_, kSlice);
  }
}

// Fails waiting tasks unless a slot has a worker, or is starting one and did not fail before.
void WorkerPool::FailWaiting(const absl::Status& why) {
  std::vector<std::pair<Task, absl::Status>> gone;
  {
    MutexLock lock(&mutex_);
    if (able_ > 0) return;
    for (FairQueue<Task>::Taken& taken : queue_.TakeIf([](const Task&) { return true; })) {
      Task& task = taken.item;
      absl::Status end = StillWanted(task);
      Count(task, end.ok() ? Outcome::kCrashed : Outcome::kCancelled);
      if (end.ok()) {
        end = AfterTry(task.first_try,
                       Unavailable(task.Name(), ": no worker starts: ", Message(why)));
      }
      gone.emplace_back(std::move(task), std::move(end));
    }
    changed_.NotifyAll();
  }
  for (const auto& [task, end] : gone) {
    const ScopedTrace traced(task.trace);
    Answer(task, end);
  }
}

// Returns a task to the queue, for another slot or for this one with a new worker.
void WorkerPool::GiveBack(Task task) {
  const WorkOwner owner = task.owner;
  MutexLock lock(&mutex_);
  --stats_.running;
  queue_.Push(owner, std::move(task));
  queue_.Done(owner);
  changed_.NotifyAll();
}

absl::Status WorkerPool::CheckToolchain() {
  absl::Status available = toolchain_.Available();
  if (!available.ok()) ++toolchain_losses_;
  return available;
}

// An aborting pool needs no worker: it only answers.
absl::Status WorkerPool::EnsureWorker(Slot* slot) {
  if (slot->worker != nullptr || Aborting()) return absl::OkStatus();
  absl::Status started = StartWorker(slot);
  if (!started.ok()) logger_.Error("worker_not_started", {{"reason", Message(started)}});
  const bool was_able = slot->failed_starts == 0;
  slot->failed_starts = started.ok() ? 0 : slot->failed_starts + 1;
  if (was_able == started.ok()) return started;
  MutexLock lock(&mutex_);
  able_ += started.ok() ? 1 : -1;
  // This slot may have consumed the notification of a job.
  if (!started.ok()) changed_.NotifyAll();
  return started;
}

absl::Status WorkerPool::StartWorker(Slot* slot) {
  const int64_t losses = toolchain_losses_;
  ASSIGN_OR_RETURN(std::unique_ptr<WorkerProcess> worker, starter_->Start(slot->index));
  absl::Status hello = ReadHello(worker.get());
  if (!hello.ok()) {
    return Unavailable("worker ", slot->index, " did not start: ", Message(hello), "; it ",
                       worker->End(kCrashGrace));
  }
  const std::string left = worker->LeftBefore();
  if (!left.empty()) logger_.Warning("worker_directory_left", {{"reason", left}});
  MutexLock lock(&mutex_);
  if (slot->started_before) ++stats_.restarts;
  slot->started_before = true;
  slot->jobs = 0;
  slot->losses = losses;
  slot->worker = std::move(worker);
  ++stats_.workers;
  return absl::OkStatus();
}

absl::Status WorkerPool::ReadHello(WorkerProcess* worker) {
  ASSIGN_OR_RETURN(std::optional<std::string> body, worker->channel().Receive(kHelloLimit));
  if (!body.has_value()) return DeadlineExceeded("it said nothing");
  ASSIGN_OR_RETURN(WorkerReply reply, DecodeReply(*body));
  const auto* hello = std::get_if<WorkerHello>(&reply);
  if (hello == nullptr) return Internal("it did not say what it is");
  if (hello->abi_version != FUSION_KERNEL_ABI_VERSION) {
    return FailedPrecondition("it checks kernel ABI ", hello->abi_version, "; expected ",
                              FUSION_KERNEL_ABI_VERSION);
  }
  MutexLock lock(&mutex_);
  stats_.sandbox = hello->sandbox;
  stats_.isa = hello->isa;
  return absl::OkStatus();
}

std::string WorkerPool::EndWorker(Slot* slot, Nanoseconds grace) {
  if (slot->worker == nullptr) return "not running";
  std::string end = slot->worker->End(grace);
  slot->worker.reset();
  MutexLock lock(&mutex_);
  --stats_.workers;
  return end;
}

void WorkerPool::Count(const Task& task, Outcome outcome) {
  if (task.race == nullptr) return CountJob(outcome);
  ++(outcome == Outcome::kDone ? stats_.races : stats_.races_failed);
}

void WorkerPool::CountJob(Outcome outcome) {
  switch (outcome) {
    case Outcome::kDone:
      ++stats_.done;
      break;
    case Outcome::kFailed:
      ++stats_.failed;
      break;
    case Outcome::kTimedOut:
      ++stats_.timed_out;
      break;
    case Outcome::kOutOfMemory:
      ++stats_.out_of_memory;
      break;
    case Outcome::kCrashed:
      ++stats_.crashed;
      break;
    case Outcome::kCancelled:
    case Outcome::kStopped:
      ++stats_.cancelled;
      break;
  }
}

void WorkerPool::Finish(const Task& task, TaskResult result, Outcome outcome) {
  {
    MutexLock lock(&mutex_);
    --stats_.running;
    queue_.Done(task.owner);
    Count(task, outcome);
    changed_.NotifyAll();
  }
  Answer(task, std::move(result));
}

void WorkerPool::Answer(const Task& task, TaskResult result) {
  if (task.race != nullptr) {
    task.race_ticket->result_.Set(result.ok() ? RaceResult(std::get<1>(*std::move(result)))
                                              : RaceResult(result.status()));
    return;
  }
  CompileResult made =
      result.ok() ? CompileResult(std::get<0>(*std::move(result))) : CompileResult(result.status());
  if (made.ok() && options_.on_made) options_.on_made(**made);
  if (task.on_done) task.on_done(made);
  task.ticket->result_.Set(std::move(made));
}

}  // namespace fusion
