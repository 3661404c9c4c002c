#include "core/pipeline/plan_builds.h"

#include <algorithm>
#include <optional>

namespace fusion {

KernelStatus ReadyStatus(const KernelArtifact& kernel, bool cached) {
  return {.key = kernel.key,
          .state = KernelState::kReady,
          .content = kernel.content,
          .bytes = static_cast<int64_t>(kernel.binary.size()),
          .check = kernel.check,
          .cached = cached,
          .compile_ms = kernel.compile_ms};
}

PlanBuilds::PlanBuilds(const PlanBuildsOptions& options, Planning& planning,
                       KernelRegistry& registry, Store& store, WorkerPool& workers, Logger& logger,
                       const Clock& clock)
    : planning_(planning),
      registry_(registry),
      store_(store),
      logger_(logger),
      kernel_builds_(workers, options.failure_ttl, clock),
      threads_(options.threads, options.queue_limit),
      flights_(threads_) {}

PlanBuilds::~PlanBuilds() { Stop(); }

/// Tells an observer what it does not know yet.
class PlanBuilds::Teller {
 public:
  explicit Teller(StageObserver* observer) : observer_(observer) {}

  void Tell(const Round& round) {
    if (round.number < round_) return;  // its build has just ended
    if (round.number > round_) {
      round_ = round.number;
      told_ = {};
      observer_->OnStage("plan", 0, 0);
    }
    if (round.batch != nullptr) TellCounts(DoneOf(*round.batch), round.batch->found.size());
  }
  void TellAll(int kernels) {
    if (observer_ != nullptr) TellCounts(kernels, static_cast<size_t>(kernels));
  }

 private:
  using Counts = std::pair<int, int>;

  void TellCounts(int done, size_t total) {
    Counts counts(done, static_cast<int>(total));
    if (std::exchange(told_, counts) != counts) observer_->OnStage("compile", done, counts.second);
  }

  StageObserver* const observer_;
  int round_ = 0;
  std::optional<Counts> told_;
};

BuiltOr PlanBuilds::Build(const WorkPtr& work, std::shared_ptr<const Planned> planned,
                          const CancelToken& waiter, StageObserver* observer) {
  // Started here, not in the flight: whoever gets an answer must find the kernels it names. A
  // flight of the same plan holds the same kernels; one of another plan would not.
  std::shared_ptr<Batch> batch = StartKernels(*planned);
  FlightKey key(work->planning_key, AloneOf(planned->stored->plan));
  Teller teller(observer);
  auto tell = [&] {
    if (observer != nullptr) teller.Tell(RoundOf(key, batch));
  };
  tell();
  BuiltOr built = flights_.Run(
      key, waiter,
      [this, work, planned, batch, key] { return BuildForAll(work, planned, batch, key); },
      /*shared=*/nullptr, tell);
  if (built.ok()) teller.TellAll(static_cast<int>((*built)->kernels.size()));
  return built;
}

// What a build is at; `first` if it has planned nothing anew.
PlanBuilds::Round PlanBuilds::RoundOf(const FlightKey& key,
                                      const std::shared_ptr<const Batch>& first) const {
  MutexLock lock(&mutex_);
  auto it = replanned_.find(key);
  return it == replanned_.end() ? Round{.number = 0, .batch = first} : it->second;
}

// Kernels that were found, that are made, and that failed. Looks at nothing that a flight changes.
int PlanBuilds::DoneOf(const Batch& batch) {
  size_t under_way = 0;
  for (const auto& [k, claim] : batch.claims) under_way += claim.ticket().IsDone() ? 0 : 1;
  return static_cast<int>(batch.found.size() - under_way);
}

// Looks up the kernels of a plan and starts those that the store lacks.
std::shared_ptr<PlanBuilds::Batch> PlanBuilds::StartKernels(const Planned& planned) {
  size_t count = planned.jobs.size();
  auto batch = std::make_shared<Batch>();
  batch->kernels.resize(count);
  batch->found.resize(count);
  batch->results.resize(count);
  for (size_t k = 0; k < count; ++k) {
    const CompileJob& job = planned.jobs[k];
    auto lookup = [&] { return store_.GetKernel({job.key, job.full_key}).value; };
    batch->kernels[k] = lookup();
    if (batch->kernels[k] == nullptr) {
      absl::StatusOr<KernelBuilds::Started> started = kernel_builds_.Start(job, lookup);
      batch->results[k] = started.status();
      if (!started.ok()) continue;
      if (auto* claim = std::get_if<KernelBuilds::Claim>(&*started)) {
        batch->claims.emplace_back(k, std::move(*claim));
        continue;
      }
      batch->kernels[k] = std::get<0>(*std::move(started));
    }
    batch->found[k] = true;
  }
  return batch;
}

void PlanBuilds::WaitForKernels(Batch* batch) {
  const CancelToken everybody;  // the pool ends every job, and when it stops at once
  for (const auto& [k, claim] : batch->claims) {
    CompileResult result = claim.ticket().Wait(everybody);
    batch->results[k] = result.status();
    if (result.ok()) batch->kernels[k] = *std::move(result);
  }
}

BuiltOr PlanBuilds::BuildForAll(const WorkPtr& work, std::shared_ptr<const Planned> planned,
                                std::shared_ptr<Batch> batch, const FlightKey& key) {
  BuiltOr built = BuildRounds(work, std::move(planned), std::move(batch), key);
  decltype(replanned_)::node_type ended;  // dies unlocked
  MutexLock lock(&mutex_);
  ended = replanned_.extract(key);
  return built;
}

BuiltOr PlanBuilds::BuildRounds(WorkPtr work, std::shared_ptr<const Planned> planned,
                                std::shared_ptr<Batch> batch, const FlightKey& key) {
  auto built = std::make_shared<Built>();
  Alone alone = AloneOf(planned->stored->plan);
  bool lasting = true;
  for (int round = 1;; ++round) {
    WaitForKernels(batch.get());
    size_t before = alone.size();
    const fusion::Plan& plan = planned->stored->plan;
    const bool unregistered = Unregister(plan, batch.get(), &work);
    absl::Status isolated = work->options.lock != nullptr
                                ? CheckPinned(plan, batch->results)
                                : IsolateFailures(plan, batch->results, logger_, &alone);
    if (isolated.ok() && alone.size() == before && !unregistered) break;
    // Kernels that others were told of stay to be had, whatever becomes of the plan.
    Publish(BundleOf(nullptr, *batch), &built->warnings);
    RETURN_IF_ERROR(isolated);
    lasting &= std::none_of(batch->results.begin(), batch->results.end(), MayPass);
    SetRound(key, {.number = round, .batch = nullptr});
    PlanOrigin origin;
    ASSIGN_OR_RETURN(planned, planning_.Plan(work, alone, {}, CancelToken(), &origin));
    batch = StartKernels(*planned);
    SetRound(key, {.number = round, .batch = batch});
  }
  lasting &= !registry_.MayPass(planned->stored->plan);
  registry_.NoteReady(planned->stored->plan);
  built->stored = planned->stored;
  built->kernels = batch->kernels;
  built->found = batch->found;
  // Before the claims of `batch` end.
  Publish(BundleOf(lasting ? built->stored : nullptr, *batch), &built->warnings);
  return BuiltOr(std::move(built));
}

// Quarantines registered kernels that failed; `work` is then without them. True if there were any.
bool PlanBuilds::Unregister(const fusion::Plan& plan, Batch* batch, WorkPtr* work) {
  const std::map<std::string, absl::Status> failed = TakeRegisteredFailures(plan, &batch->results);
  if (failed.empty()) return false;
  for (const auto& [name, why] : failed) registry_.Quarantine(name, why);
  std::map<std::string, std::string> unused = registry_.Quarantined();
  for (const auto& [name, reason] : (*work)->registered.unused) unused.try_emplace(name, reason);
  *work = WithUnused(*work, std::move(unused));
  return true;
}

void PlanBuilds::SetRound(const FlightKey& key, Round round) {
  MutexLock lock(&mutex_);
  replanned_[key] = std::move(round);
}

Bundle PlanBuilds::BundleOf(std::shared_ptr<const StoredPlan> plan, const Batch& batch) {
  Bundle bundle{.plan = std::move(plan), .kernels = {}};
  for (size_t k = 0; k < batch.kernels.size(); ++k) {
    if (!batch.found[k] && batch.kernels[k] != nullptr) bundle.kernels.push_back(batch.kernels[k]);
  }
  return bundle;
}

void PlanBuilds::Publish(Bundle bundle, std::vector<std::string>* warnings) {
  absl::Status status = store_.PutBundle(bundle);
  if (status.ok()) return;
  logger_.Warning("bundle_not_stored", {{"plan", bundle.plan ? bundle.plan->key.ToHex() : ""},
                                        {"kernels", bundle.kernels.size()},
                                        {"reason", Message(status)}});
  warnings->push_back(StrCat("not stored: ", Message(status)));
}

std::vector<KernelStatus> PlanBuilds::Describe(const fusion::Plan& plan) {
  std::vector<KernelStatus> statuses;
  for (const PlanKernel& kernel : plan.kernels) {
    if (Found<KernelArtifact> found = store_.GetKernel({kernel.key})) {
      statuses.push_back(ReadyStatus(*found.value, /*cached=*/true));
      continue;
    }
    bool failed = kernel_builds_.Failure(kernel.key).has_value();
    statuses.push_back(
        {.key = kernel.key, .state = failed ? KernelState::kFailed : KernelState::kPending});
  }
  return statuses;
}

KernelReply PlanBuilds::GetKernel(const Digest& key, const CancelToken& cancel) {
  std::shared_ptr<const CompileTicket> ticket = kernel_builds_.Find(key);
  if (Found<KernelArtifact> found = store_.GetKernel({key})) {
    return {KernelState::kReady, found.value, absl::OkStatus()};
  }
  if (ticket != nullptr) {
    CompileResult result = ticket->Wait(cancel);
    if (result.ok()) return {KernelState::kReady, *std::move(result), absl::OkStatus()};
    bool gave_up = !cancel.Check().ok();
    return {gave_up ? KernelState::kPending : KernelState::kFailed, nullptr, result.status()};
  }
  if (std::optional<absl::Status> why = kernel_builds_.Failure(key)) {
    return {KernelState::kFailed, nullptr, *why};
  }
  return {KernelState::kFailed, nullptr,
          NotFound("no kernel ", key.ToHex(), ": neither stored nor being compiled; plan again")};
}

}  // namespace fusion
