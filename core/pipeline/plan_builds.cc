#include "core/pipeline/plan_builds.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <tuple>

#include "core/pipeline/plan_search.h"

namespace fusion {

namespace {

// A search whose findings cannot be planned with: everything stays as the model picked.
std::shared_ptr<const TileSearch> WithoutFindings(const TileSearch& search,
                                                  std::string_view reason) {
  auto without = std::make_shared<TileSearch>(search);
  for (TunedKernel& kernel : without->kernels) kernel.chosen = 0;
  without->changed = 0;
  without->reason = std::string(reason);
  return without;
}

}  // namespace

KernelStatus ReadyStatus(const KernelArtifact& kernel, bool cached) {
  return {.key = kernel.key,
          .state = KernelState::kReady,
          .content = kernel.content,
          .bytes = static_cast<int64_t>(kernel.binary.size()),
          .check = kernel.check,
          .cached = cached,
          .compile_ms = kernel.compile_ms};
}

PlanBuilds::PlanBuilds(const PlanBuildsOptions& options, const Toolchain& toolchain,
                       Planning& planning, KernelRegistry& registry, Store& store,
                       WorkerPool& workers, Logger& logger, const Clock& clock)
    : options_(options),
      toolchain_(toolchain),
      planning_(planning),
      registry_(registry),
      store_(store),
      workers_(workers),
      logger_(logger),
      clock_(clock),
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
    if (round.search != nullptr) {
      TellCounts("search", round.search->done, round.search->total);
    } else if (round.batch != nullptr) {
      TellCounts("compile", DoneOf(*round.batch), static_cast<int>(round.batch->found.size()));
    }
  }
  void TellAll(int kernels) {
    if (observer_ != nullptr) TellCounts("compile", kernels, kernels);
  }

 private:
  using Counts = std::tuple<std::string, int, int>;

  void TellCounts(const char* stage, int done, int total) {
    Counts counts(stage, done, total);
    if (std::exchange(told_, counts) != counts) observer_->OnStage(stage, done, total);
  }

  StageObserver* const observer_;
  int round_ = 0;
  std::optional<Counts> told_;
};

BuiltOr PlanBuilds::Build(const WorkPtr& work, std::shared_ptr<const Planned> planned,
                          const CancelToken& waiter, StageObserver* observer, bool goes_on) {
  // Started here, not in the flight: whoever gets an answer must find the kernels it names. A
  // flight of the same plan holds the same kernels; one of another plan would not.
  std::shared_ptr<Batch> batch = StartKernels(*planned);
  FlightKey key(work->planning_key, AloneOf(planned->stored->plan));
  Teller teller(observer);
  auto tell = [&] {
    if (observer != nullptr) teller.Tell(RoundOf(key, batch));
  };
  tell();
  auto patience = std::make_shared<Patience>(clock_);
  if (std::optional<Nanoseconds> left = waiter.Remaining(); left.has_value() && !goes_on) {
    patience->deadline = clock_.Now() + *left;
  }
  BuiltOr built = flights_.Run(
      key, waiter,
      [this, work, planned, batch, key, patience] {
        return BuildForAll(work, planned, batch, key, *patience);
      },
      /*shared=*/nullptr, tell);
  if (!goes_on && !waiter.Check().ok()) patience->given_up.Cancel();
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

/// Makes what a search tries on the workers of the service, and times it there. One search; not
/// thread-safe.
class PlanBuilds::Bench final : public TileBench {
 public:
  Bench(PlanBuilds* builds, const Batch& picks) : builds_(*builds) {
    for (const auto& kernel : picks.kernels) {
      if (kernel != nullptr) known_[kernel->key] = kernel;
    }
  }

  std::vector<CompileResult> Make(const std::vector<CompileJob>& jobs,
                                  const CancelToken& until) override {
    std::vector<CompileResult> made(jobs.size(), CompileResult(Internal("not tried")));
    std::deque<std::pair<size_t, KernelBuilds::Claim*>> under_way;
    auto await = [&](size_t most) {
      while (under_way.size() > most) {
        auto [i, claim] = under_way.front();
        under_way.pop_front();
        made[i] = claim->ticket().Wait(until);
        if (made[i].ok()) known_[jobs[i].key] = *made[i];
      }
    };
    for (size_t i = 0; i < jobs.size(); ++i) {
      if (auto known = known_.find(jobs[i].key); known != known_.end()) {
        made[i] = known->second;
        continue;
      }
      await(std::max<size_t>(builds_.options_.search_window, 1) - 1);
      if (absl::Status wanted = until.Check(); !wanted.ok()) {
        made[i] = wanted;
        continue;
      }
      auto lookup = [&] { return builds_.store_.GetKernel({jobs[i].key, jobs[i].full_key}).value; };
      absl::StatusOr<KernelBuilds::Started> started = builds_.kernel_builds_.Start(jobs[i], lookup);
      if (!started.ok()) {
        made[i] = started.status();
      } else if (auto* claim = std::get_if<KernelBuilds::Claim>(&*started)) {
        claims_.push_back(std::move(*claim));
        under_way.emplace_back(i, &claims_.back());
      } else {
        made[i] = std::get<0>(*std::move(started));
        known_[jobs[i].key] = *made[i];
      }
    }
    await(0);
    for (const CompileResult& result : made) dropped_ += IsKernelsFault(result.status()) ? 1 : 0;
    return made;
  }

  absl::StatusOr<RaceTimes> Race(KernelRace race, const CancelToken& until) override {
    RETURN_IF_ERROR(builds_.BeginRace(until));
    absl::StatusOr<RaceTimes> times = Run(std::move(race), until);
    builds_.EndRace();
    return times;
  }

  std::optional<TunedKernel> Recall(const Digest& pick, const Digest& race) override {
    auto known = known_.find(pick);
    if (known == known_.end()) return std::nullopt;
    for (const MeasuredTiles& measured : known->second->searches) {
      if (measured.race == race) return measured.result;
    }
    return std::nullopt;
  }

  void Keep(const Digest& pick, MeasuredTiles measured) override {
    measured.result.group = -1;
    findings_[pick].push_back(std::move(measured));
  }

  /// What was found out, with the kernels that it is about.
  void AddFindings(Bundle* bundle) const {
    for (const auto& [pick, fresh] : findings_) {
      auto kernel = std::make_shared<KernelArtifact>(*known_.at(pick));
      std::vector<MeasuredTiles>& all = kernel->searches;
      all.insert(all.end(), fresh.begin(), fresh.end());
      if (all.size() > kMaxMeasuredTiles) {
        all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(kMaxMeasuredTiles));
      }
      auto same = [&](const auto& other) { return other->key == kernel->key; };
      std::erase_if(bundle->kernels, same);
      bundle->kernels.push_back(std::move(kernel));
    }
  }

  int64_t dropped() const { return dropped_; }

 private:
  absl::StatusOr<RaceTimes> Run(KernelRace race, const CancelToken& until) {
    ASSIGN_OR_RETURN(std::shared_ptr<RaceTicket> ticket,
                     builds_.workers_.SubmitRace(std::move(race)));
    ASSIGN_OR_RETURN(std::shared_ptr<const RaceTimes> times, ticket->Wait(until));
    return *times;
  }

  PlanBuilds& builds_;
  std::map<Digest, std::shared_ptr<const KernelArtifact>> known_;
  std::deque<KernelBuilds::Claim> claims_;
  std::map<Digest, std::vector<MeasuredTiles>> findings_;
  int64_t dropped_ = 0;
};

BuiltOr PlanBuilds::BuildForAll(const WorkPtr& work, std::shared_ptr<const Planned> planned,
                                std::shared_ptr<Batch> batch, const FlightKey& key,
                                const Patience& patience) {
  BuiltOr built = BuildRounds(work, std::move(planned), std::move(batch), key, patience);
  decltype(replanned_)::node_type ended;  // dies unlocked
  MutexLock lock(&mutex_);
  ended = replanned_.extract(key);
  return built;
}

BuiltOr PlanBuilds::BuildRounds(WorkPtr work, std::shared_ptr<const Planned> planned,
                                std::shared_ptr<Batch> batch, const FlightKey& key,
                                const Patience& patience) {
  auto built = std::make_shared<Built>();
  Alone alone = AloneOf(planned->stored->plan);
  bool lasting = true;
  std::unique_ptr<Bench> bench;  // its claims keep what it has made until that is published
  std::set<Digest> made_here;    // kernels that were published on the way
  for (int round = 1;; ++round) {
    WaitForKernels(batch.get());
    size_t before = alone.size();
    const fusion::Plan& plan = planned->stored->plan;
    const bool unregistered = Unregister(plan, batch.get(), &work);
    absl::Status isolated = work->options.lock != nullptr
                                ? CheckPinned(plan, batch->results)
                                : IsolateFailures(plan, batch->results, logger_, &alone);
    const bool sound = isolated.ok() && alone.size() == before && !unregistered;
    if (sound && planned->model == nullptr) break;
    lasting &= std::none_of(batch->results.begin(), batch->results.end(), MayPass);
    // Kernels that others were told of stay to be had, whatever becomes of the plan; one that is
    // searched for runs meanwhile.
    const bool stays = sound && lasting && !registry_.MayPass(plan);
    Bundle ready = BundleOf(stays ? planned->stored : nullptr, *batch);
    for (const auto& kernel : ready.kernels) made_here.insert(kernel->key);
    Publish(std::move(ready), &built->warnings);
    RETURN_IF_ERROR(isolated);
    if (sound) {
      bench = std::make_unique<Bench>(this, *batch);
      const Nanoseconds start = clock_.Now();
      TileSearch search = SearchFor(*work, *planned, key, round, patience, bench.get());
      built->searched += clock_.Now() - start;
      work = WithSearch(work, std::make_shared<const TileSearch>(std::move(search)));
    }
    SetRound(key, {.number = round, .batch = nullptr});
    PlanOrigin origin;
    PlannedOr again = planning_.Plan(work, alone, {}, CancelToken(), &origin);
    if (absl::IsInternal(again.status()) && sound) {
      // Better the model's picks than no plan.
      logger_.Error("tiles_not_planned",
                    {{"plan", work->key.ToHex()}, {"reason", Message(again.status())}});
      work = WithSearch(work, WithoutFindings(*work->search, Message(again.status())));
      again = planning_.Plan(work, alone, {}, CancelToken(), &origin);
    }
    ASSIGN_OR_RETURN(planned, std::move(again));
    batch = StartKernels(*planned);
    SetRound(key, {.number = round, .batch = batch});
  }
  lasting &= !registry_.MayPass(planned->stored->plan);
  registry_.NoteReady(planned->stored->plan);
  built->stored = planned->stored;
  built->kernels = batch->kernels;
  built->found = batch->found;
  // Before the claims of `batch` and `bench` end.
  Bundle bundle = BundleOf(lasting ? built->stored : nullptr, *batch);
  if (bench != nullptr) bench->AddFindings(&bundle);
  Publish(std::move(bundle), &built->warnings);
  for (size_t k = 0; k < built->found.size(); ++k) {
    if (made_here.contains(built->kernels[k]->key)) built->found[k] = false;
  }
  return BuiltOr(std::move(built));
}

absl::Status PlanBuilds::BeginRace(const CancelToken& until) {
  constexpr Nanoseconds kSlice = std::chrono::milliseconds(20);
  MutexLock lock(&mutex_);
  while (racing_) {
    RETURN_IF_ERROR(until.Check());
    raced_.WaitFor(&mutex_, kSlice);
  }
  racing_ = true;
  return absl::OkStatus();
}

void PlanBuilds::EndRace() {
  MutexLock lock(&mutex_);
  racing_ = false;
  raced_.NotifyAll();
}

TileSearch PlanBuilds::SearchFor(const Work& work, const Planned& planned, const FlightKey& key,
                                 int round, const Patience& patience, Bench* bench) {
  // Of what is left before a deadline, this is for planning and publishing what was found.
  constexpr double kPartToFinish = 0.1;
  constexpr Nanoseconds kMostToFinish = std::chrono::seconds(5);
  const Nanoseconds start = clock_.Now();
  Nanoseconds request_end = Nanoseconds::max();
  if (patience.deadline.has_value()) {
    const Nanoseconds left = std::max(Nanoseconds(0), *patience.deadline - start);
    const auto part = std::chrono::duration_cast<Nanoseconds>(left * kPartToFinish);
    request_end = *patience.deadline - std::min(part, kMostToFinish);
  }
  const CancelToken request(patience.given_up, request_end);
  const Nanoseconds limit = BudgetOf(work.options.opt_level).limit;
  const CancelToken until(request, start + limit);
  PlanSearch search(work, planned, toolchain_, until);
  auto count = std::make_shared<SearchCount>();
  count->total = static_cast<int>(search.task().kernels.size());
  SetRound(key, {.number = round - 1, .batch = nullptr, .search = count});
  TileSearch out = SearchTiles(search.task(), *bench, request, until, clock_,
                               [&](int done) { count->done = done; });
  logger_.Info("tiles_searched", {{"plan", planned.stored->key.ToHex()},
                                  {"level", out.level},
                                  {"kernels", out.kernels.size()},
                                  {"measured", out.measured},
                                  {"recalled", out.recalled},
                                  {"dropped", bench->dropped()},
                                  {"changed", out.changed},
                                  {"seconds", out.seconds},
                                  {"reason", out.reason}});
  MutexLock lock(&mutex_);
  ++search_stats_.searches;
  search_stats_.measured += out.measured;
  search_stats_.recalled += out.recalled;
  search_stats_.dropped += bench->dropped();
  search_stats_.changed += out.changed;
  search_stats_.cut_short += out.state == TileSearchState::kCutShort ? 1 : 0;
  return out;
}

SearchStats PlanBuilds::searches() const {
  MutexLock lock(&mutex_);
  return search_stats_;
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
