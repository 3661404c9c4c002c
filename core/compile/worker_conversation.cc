#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/files/server_state.h"
#include "core/compile/worker_pool.h"

namespace fusion {
namespace {

// Payload: one character for each worker that a failed job killed.
constexpr char kLostWorkers[] = "fusion.lost-workers";

// Interval between checks of a worker's resource use.
constexpr Nanoseconds kExcessSlice = std::chrono::milliseconds(200);
constexpr Nanoseconds kSendTaskLimit = std::chrono::seconds(10);

// Most bytes of a log that a status quotes; the log directory has the whole log.
constexpr size_t kQuotedLogBytes = 2000;

// More CPU seconds than one thread can use within `wall`, so that the watcher, which can report it,
// acts first; for a command that outlives its watcher.
int64_t CpuSeconds(Nanoseconds wall) {
  return std::chrono::ceil<std::chrono::seconds>(wall).count() + 1;
}

// The time limit of a race that begins now; if not above 0, its result would be too late.
Nanoseconds RaceLimit(const KernelRace& race, const CancelToken& cancel) {
  const std::optional<Nanoseconds> left = cancel.Remaining();
  return left.has_value() ? std::min(race.limit, *left - kRaceWayBack) : race.limit;
}

// One mark for each worker lost.
absl::Status WithLostWorkers(int count, absl::Status status) {
  const int lost = WorkersLostTo(status) + count;
  if (lost > 0) {
    status.SetPayload(kLostWorkers, absl::Cord(std::string(static_cast<size_t>(lost), 'x')));
  }
  return status;
}

// The status of a job after a first try that ended with `first`; mentions that try and counts its
// lost worker.
absl::Status AfterTry(const absl::Status& first, const absl::Status& second) {
  const int lost = WorkersLostTo(first);
  if (lost == 0 || WorkersLostTo(second) > 0) return WithLostWorkers(lost, second);
  absl::Status both(second.code(), StrCat(Message(second), "; the try before: ", Message(first)));
  second.ForEachPayload([&both](absl::string_view type, const absl::Cord& payload) {
    both.SetPayload(type, payload);
  });
  return WithLostWorkers(lost, both);
}

}  // namespace

int WorkersLostTo(const absl::Status& status) {
  const absl::optional<absl::Cord> lost = status.GetPayload(kLostWorkers);
  return lost.has_value() ? static_cast<int>(lost->size()) : 0;
}

void WorkerPool::Execute(Task task, Slot* slot) {
  const ScopedTrace traced(task.trace);
  Outcome outcome = Outcome::kDone;
  TaskResult result = Run(task, slot, &outcome);
  if (outcome == Outcome::kCrashed && task.first_try.ok() && !Aborting()) {
    {
      MutexLock lock(&mutex_);
      ++stats_.retried;
    }
    task.first_try = result.status();
    if (!EnsureWorker(slot).ok()) return GiveBack(std::move(task));
    outcome = Outcome::kDone;
    result = Run(task, slot, &outcome);
  }
  if (!result.ok()) result = AfterTry(task.first_try, result.status());
  Finish(task, std::move(result), outcome);
  // After the answer, so that it does not delay the job. Files that the worker could not remove
  // must not count against the next job.
  if (slot->worker != nullptr &&
      (++slot->jobs >= options_.jobs_per_worker || !slot->worker->Excess().empty())) {
    EndWorker(slot, Nanoseconds(0));
  }
}

WorkerPool::TaskResult WorkerPool::Run(const Task& task, Slot* slot, Outcome* outcome) {
  if (Aborting()) {
    *outcome = Outcome::kStopped;
    return Unavailable(task.Name(), ": the service stops");
  }
  absl::Status wanted = StillWanted(task);
  const bool race = task.race != nullptr && task.cancel != nullptr;
  if (wanted.ok() && race && RaceLimit(*task.race, *task.cancel).count() <= 0) {
    wanted = DeadlineExceeded(task.Name(), ": no time is left for it");
  }
  if (!wanted.ok()) {
    *outcome = Outcome::kCancelled;
    return wanted;
  }
  absl::Status sent = slot->worker->channel().Send(MessageOf(task), kSendTaskLimit);
  if (!sent.ok()) {
    *outcome = Outcome::kCrashed;
    return Crashed(task, "taking the job", Message(sent), slot);
  }
  return Converse(task, slot, outcome);
}

std::string WorkerPool::MessageOf(const Task& task) const {
  if (task.race != nullptr) {
    KernelRace race = *task.race;
    if (task.cancel != nullptr) race.limit = RaceLimit(race, *task.cancel);
    return EncodeRace(race);
  }
  WorkerJob work{task.job,
                 toolchain_.CompileArgv(task.job.isa, task.job.numerics, task.job.debug),
                 toolchain_.LinkArgv(),
                 options_.command_limit,
                 options_.command_limits,
                 options_.log_bytes};
  work.limits.cpu_seconds = CpuSeconds(options_.command_limit);
  return EncodeJob(work);
}

// A race has its own limit; the job limit covers the worker's overhead.
Nanoseconds WorkerPool::LimitOf(const Task& task) const {
  return options_.job_limit + (task.race == nullptr ? Nanoseconds(0) : task.race->limit);
}

WorkerPool::TaskResult WorkerPool::Converse(const Task& task, Slot* slot, Outcome* outcome) {
  std::string stage = "taking the job";
  const Nanoseconds start = clock_.Now();
  const Nanoseconds deadline = start + LimitOf(task);
  Nanoseconds next_look = start + kExcessSlice;
  for (;;) {
    absl::StatusOr<std::optional<std::string>> body = slot->worker->channel().Receive(kSlice);
    *outcome = Outcome::kCrashed;
    if (!body.ok()) return Crashed(task, stage, Message(body.status()), slot);
    if (body->has_value()) {
      absl::StatusOr<WorkerReply> reply = DecodeReply(**body);
      if (!reply.ok()) return Crashed(task, stage, Message(reply.status()), slot);
      const bool race = task.race != nullptr;
      const auto* result = std::get_if<WorkerResult>(&*reply);
      if (result != nullptr && !race) return Conclude(task, *result, outcome);
      const auto* times = std::get_if<WorkerRaceResult>(&*reply);
      if (times != nullptr && race) return Conclude(task, *times, outcome);
      const auto* news = std::get_if<WorkerStage>(&*reply);
      if (news == nullptr) return Crashed(task, stage, "an unexpected message", slot);
      stage = news->stage;
      continue;
    }
    absl::Status stop = WhyStop(task, stage, deadline, &next_look, slot, outcome);
    if (!stop.ok()) {
      EndWorker(slot, Nanoseconds(0));
      return stop;
    }
  }
}

absl::Status WorkerPool::WhyStop(const Task& task, std::string_view stage, Nanoseconds deadline,
                                 Nanoseconds* next_look, Slot* slot, Outcome* outcome) {
  if (Aborting()) {
    *outcome = Outcome::kStopped;
    return Unavailable(task.Name(), ": the service stops");
  }
  const absl::Status wanted = StillWanted(task);
  if (!wanted.ok()) {
    *outcome = Outcome::kCancelled;
    return Annotate(wanted, task.Name());
  }
  const Nanoseconds now = clock_.Now();
  if (now >= deadline) {
    *outcome = Outcome::kTimedOut;
    std::string message = StrCat(task.Name(), ": killed after ",
                                 ToMilliseconds(LimitOf(task)) / 1000, " s in stage '", stage, "'");
    return WorkerKilled(task, DeadlineExceeded(message));
  }
  if (now < *next_look) return absl::OkStatus();
  *next_look = now + kExcessSlice;
  const std::string excess = slot->worker->Excess();
  if (excess.empty()) return absl::OkStatus();
  *outcome = Outcome::kFailed;
  return WorkerKilled(task,
                      Internal(StrCat(task.Name(), ": killed in stage '", stage, "': ", excess)));
}

absl::Status WorkerPool::WorkerKilled(const Task& task, absl::Status why) {
  SaveLog(task, Message(why), "");
  return WithLostWorkers(1, std::move(why));
}

WorkerPool::TaskResult WorkerPool::Conclude(const Task& task, const WorkerResult& result,
                                            Outcome* outcome) {
  if (!result.status.ok()) {
    absl::StatusCode code = result.status.code();
    bool limit = code == absl::StatusCode::kDeadlineExceeded;
    *outcome = limit                  ? Outcome::kTimedOut
               : result.out_of_memory ? Outcome::kOutOfMemory
                                      : Outcome::kFailed;
    // A compiler that was removed since Submit is not the kernel's fault.
    absl::Status there = result.built ? absl::OkStatus() : CheckToolchain();
    if (!there.ok()) return Annotate(there, task.Name());
    // All of a job is made by us, so the caller is not at fault. The cause is a limit of the
    // kernel, or the machine.
    bool machine = code == absl::StatusCode::kResourceExhausted ||
                   code == absl::StatusCode::kFailedPrecondition ||
                   code == absl::StatusCode::kUnavailable;
    if (!limit && !machine) code = absl::StatusCode::kInternal;
    std::string message = StrCat(task.Name(), ": ", Message(result.status));
    SaveLog(task, message, result.log);
    std::string_view log = StripSpace(result.log);
    if (!log.empty()) StrAppend(&message, StrCat(": ", log.substr(0, kQuotedLogBytes)));
    if (code == absl::StatusCode::kFailedPrecondition) return ServerPrecondition(message);
    return absl::Status(code, message);
  }
  *outcome = Outcome::kDone;
  auto kernel = std::make_shared<KernelArtifact>();
  kernel->key = task.job.key;
  kernel->full_key = task.job.full_key;
  kernel->content = Sha256(result.binary);
  kernel->binary = result.binary;
  kernel->source = task.job.source;
  kernel->schedule = task.job.schedule;
  kernel->compiler = toolchain_.CommandText(task.job.isa, task.job.numerics, task.job.debug);
  // Members are sorted by their sizes.
  const std::vector<CheckedMember>& members = task.job.members;
  kernel->reference = members.empty() ? task.job.reference : members.back().reference;
  kernel->compile_ms = result.compile_ms;
  kernel->check_ms = result.check_ms;
  kernel->check = result.check;
  return std::shared_ptr<const KernelArtifact>(std::move(kernel));
}

WorkerPool::TaskResult WorkerPool::Crashed(const Task& task, std::string_view stage,
                                           std::string_view why, Slot* slot) {
  std::string end = EndWorker(slot, kCrashGrace);
  std::string message =
      StrCat(task.Name(), ": worker failed in stage '", stage, "': ", end, " (", why, ")");
  logger_.Error("worker_crashed",
                {{"key", task.job.key.ToHex()}, {"stage", stage}, {"end", end}, {"reason", why}});
  SaveLog(task, message, "");
  // These signals come from the system or an operator; a kernel ends otherwise.
  const bool from_outside = end.find("killed by signal 9 ") != std::string::npos ||
                            end.find("killed by signal 15 ") != std::string::npos;
  return WithLostWorkers(from_outside ? 0 : 1, absl::AbortedError(message));
}

WorkerPool::TaskResult WorkerPool::Conclude(const Task& task, const WorkerRaceResult& result,
                                            Outcome* outcome) {
  *outcome = result.status.ok() ? Outcome::kDone : Outcome::kFailed;
  if (!result.status.ok()) return Annotate(result.status, task.Name());
  const size_t runners = task.race->runners.size();
  if (result.times.refusal.empty() && result.times.runners.size() != runners) {
    *outcome = Outcome::kFailed;
    return Internal(task.Name(), ": times of ", result.times.runners.size());
  }
  return std::make_shared<const RaceTimes>(result.times);
}

void WorkerPool::SaveLog(const Task& task, std::string_view message, std::string_view log) {
  if (task.race != nullptr) return;
  absl::Status saved = logs_.Save(
      task.job.key,
      StrCat(message, "\n", toolchain_.version(), "\n",
             toolchain_.CommandText(task.job.isa, task.job.numerics, task.job.debug), "\n\n", log));
  if (!saved.ok()) logger_.Warning("compile_log_not_saved", {{"reason", Message(saved)}});
}

}  // namespace fusion
