#include "core/pipeline/plan_builds.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <tuple>

#include "core/base/key_field.h"
#include "core/pipeline/plan_search.h"
#include "core/wire/stored_plan.h"

namespace fusion {

namespace {

// A search whose findings were not planned with: everything stays as the model picked, for good
// unless that may pass.
TileSearch WithoutFindings(TileSearch search, const absl::Status& why) {
  for (TunedKernel& kernel : search.kernels) kernel.chosen = 0;
  search.changed = 0;
  StrAppend(&search.reason, StrCat(search.reason.empty() ? "" : "; ",
                                   "what is faster was not planned with: ", Message(why)));
  if (MayPass(why) || !IsKernelsFault(why)) search.state = TileSearchState::kCutShort;
  return search;
}

// The same plan with what became of its search.
std::shared_ptr<const StoredPlan> WithOutcome(const StoredPlan& stored, TileSearch search) {
  Plan plan = stored.plan;
  plan.search = std::move(search);
  return std::make_shared<const StoredPlan>(
      MakeStoredPlan(stored.full_key, plan, stored.created_unix_ms, stored.model_name));
}

// Of a caller's time that is left this is for planning and publishing what was found; half of it is
// his to answer in, if that takes longer. Chosen: planning takes milliseconds of most models and a
// second of the largest (tests/bench/plan_scale).
Nanoseconds TimeToFinish(Nanoseconds left) {
  constexpr double kPart = 0.1;
  constexpr Nanoseconds kMost = std::chrono::seconds(5);
  return std::min(kMost, std::chrono::duration_cast<Nanoseconds>(left * kPart));
}

// The model's picks, for a caller that cannot wait for what others may find.
std::shared_ptr<const Built> WithoutSearch(const Built& picks, Nanoseconds waited,
                                           std::string_view why) {
  auto built = std::make_shared<Built>(picks);
  built->searched = waited;
  built->warnings.push_back(StrCat("opt_level ", picks.stored->plan.search.level, ": ", why,
                                   "; the next request goes on"));
  return built;
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
      kernel_builds_(workers, options.failure_ttl, options.quarantine, logger, clock),
      stopping_(clock),
      threads_("build", options.threads, options.queue_limit, options.spare_threads),
      search_thread_("search", /*threads=*/1, options.search_queue),
      flights_(threads_, {.linger = options.linger}, clock) {}

PlanBuilds::~PlanBuilds() { Stop(); }

void PlanBuilds::Stop() {
  EndSearches();
  threads_.Stop();
  search_thread_.Stop();
}

/// Tells an observer what it does not know yet.
class PlanBuilds::Teller {
 public:
  explicit Teller(StageObserver* observer) : observer_(observer) {}

  void Tell(const Round& round) {
    if (observer_ == nullptr || round.number < round_) return;  // its build has just ended
    if (round.number > round_) {
      round_ = round.number;
      told_ = {};
      observer_->OnStage("plan", 0, 0);
    }
    if (round.search != nullptr) {
      TellCounts(kSearchStage, round.search->done, round.search->total);
    } else if (round.batch != nullptr) {
      TellCounts(kCompileStage, DoneOf(*round.batch), static_cast<int>(round.batch->found.size()));
    }
  }
  void TellAll(int kernels) {
    if (observer_ != nullptr) TellCounts(kCompileStage, kernels, kernels);
  }
  /// `tell`, for before and while one waits; nothing where nobody follows: what is told once must
  /// go on being told.
  std::function<void()> Meanwhile(std::function<void()> tell) const {
    const bool follows = observer_ != nullptr && observer_->FollowsOthers();
    return follows ? std::move(tell) : nullptr;
  }
  int round() const { return round_; }

 private:
  using Counts = std::tuple<std::string, int, int>;

  void TellCounts(std::string_view stage, int done, int total) {
    Counts counts(stage, done, total);
    if (std::exchange(told_, counts) != counts) observer_->OnStage(stage, done, total);
  }

  StageObserver* const observer_;
  int round_ = 0;
  std::optional<Counts> told_;
};

BuiltOr PlanBuilds::Build(const WorkPtr& work, std::shared_ptr<const Planned> planned,
                          const CancelToken& waiter, StageObserver* observer, bool goes_on,
                          const WorkOwner& owner) {
  // Started here, not in the flight: whoever gets an answer must find the kernels it names. A
  // flight of the same plan holds the same kernels; one of another plan would not.
  std::shared_ptr<Batch> batch = StartKernels(*planned, owner);
  FlightKey key(work->planning_key, AloneOf(planned->stored->plan));
  Teller teller(observer);
  const auto tell = teller.Meanwhile([&] { teller.Tell(RoundOf(key, batch)); });
  if (tell) tell();
  BuiltOr built = flights_.Run(key, waiter,
                               [this, work, planned, batch, key, owner](Interest& interest) {
                                 return BuildForAll(work, planned, batch, key, owner, interest);
                               },
                               {.owner = owner, .meanwhile = tell, .goes_on = goes_on});
  if (built.ok() && (*built)->unsearched.has_value()) {
    built = AwaitSearch(key, *built, waiter, &teller, goes_on);
  }
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

/// Makes what a search tries on the workers of the service, and times it there. One search; not
/// thread-safe.
class PlanBuilds::Bench final : public TileBench {
 public:
  /// `picks`: kernels of the plan that is searched for.
  Bench(PlanBuilds* builds, const std::vector<std::shared_ptr<const KernelArtifact>>& picks)
      : builds_(*builds) {
    for (const auto& kernel : picks) known_[kernel->key] = kernel;
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
      NoteOthers(std::count_if(under_way.begin(), under_way.end(),
                               [](const auto& entry) { return !entry.second->ticket().IsDone(); }));
      auto lookup = [&] { return builds_.store_.GetKernel({jobs[i].key, jobs[i].full_key}).value; };
      // Requests that wait for their first kernels go before it.
      absl::StatusOr<KernelBuilds::Started> started =
          builds_.kernel_builds_.Start(jobs[i], lookup, {.tenant = "", .background = true});
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
    const bool over = !until.Check().ok();
    for (const CompileResult& result : made) {
      const bool late = over && WasGivenUp(result.status());
      dropped_ += !late && IsKernelsFault(result.status()) ? 1 : 0;
    }
    return made;
  }

  absl::StatusOr<RaceTimes> Race(KernelRace race, const CancelToken& until) override {
    // One that was given up is in the times of the next until its worker has ended it.
    std::shared_ptr<RaceTicket>& last = builds_.last_race_;
    if (last != nullptr) last->Wait(until).status().IgnoreError();
    RETURN_IF_ERROR(until.Check());
    NoteOthers(0);
    const Nanoseconds left = until.Remaining().value_or(Nanoseconds::max() - builds_.clock_.Now());
    auto wanted = std::make_shared<CancelToken>(builds_.clock_, builds_.clock_.Now() + left);
    ASSIGN_OR_RETURN(last, builds_.workers_.SubmitRace(std::move(race), wanted));
    absl::StatusOr<std::shared_ptr<const RaceTimes>> times = last->Wait(until);
    if (!times.ok()) {
      wanted->Cancel();
      return times.status();
    }
    return **times;
  }

  bool waited_for_others() const override { return waited_; }

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

  /// What was found out, with the kernels that it is about, which keep what others have found out
  /// meanwhile.
  void AddFindings(Bundle* bundle) const {
    for (const auto& [pick, fresh] : findings_) {
      const std::shared_ptr<const KernelArtifact>& known = known_.at(pick);
      const Found<KernelArtifact> stored = builds_.store_.GetKernel({pick, known->full_key});
      auto kernel = std::make_shared<KernelArtifact>(stored ? *stored.value : *known);
      std::vector<MeasuredTiles>& all = kernel->searches;
      for (const MeasuredTiles& measured : fresh) {
        std::erase_if(all, [&](const auto& other) { return other.race == measured.race; });
        all.push_back(measured);
      }
      if (all.size() > kMaxMeasuredTiles) {
        all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(kMaxMeasuredTiles));
      }
      auto same = [&](const auto& other) { return other->key == kernel->key; };
      std::erase_if(bundle->kernels, same);
      bundle->kernels.push_back(std::move(kernel));
    }
  }

  /// A kernel that it was given or has made; null: neither.
  std::shared_ptr<const KernelArtifact> Known(const Digest& key) const {
    auto known = known_.find(key);
    return known == known_.end() ? nullptr : known->second;
  }
  int64_t dropped() const { return dropped_; }

 private:
  // `own`: jobs of this search that are with the workers.
  void NoteOthers(int64_t own) {
    const WorkerPoolStats now = builds_.workers_.Stats();
    waited_ |= now.queued + now.running > own;
  }

  PlanBuilds& builds_;
  std::map<Digest, std::shared_ptr<const KernelArtifact>> known_;
  std::deque<KernelBuilds::Claim> claims_;
  std::map<Digest, std::vector<MeasuredTiles>> findings_;
  int64_t dropped_ = 0;
  bool waited_ = false;
};

// Looks up the kernels of a plan and starts those that the store, and `bench` (may be null), lack.
std::shared_ptr<PlanBuilds::Batch> PlanBuilds::StartKernels(const Planned& planned,
                                                            const WorkOwner& owner,
                                                            const Bench* bench) {
  size_t count = planned.jobs.size();
  auto batch = std::make_shared<Batch>();
  batch->kernels.resize(count);
  batch->found.resize(count);
  batch->results.resize(count);
  for (size_t k = 0; k < count; ++k) {
    const CompileJob& job = planned.jobs[k];
    auto lookup = [&] { return store_.GetKernel({job.key, job.full_key}).value; };
    batch->kernels[k] = lookup();
    if (batch->kernels[k] == nullptr && bench != nullptr) {
      batch->kernels[k] = bench->Known(job.key);
      if (batch->kernels[k] != nullptr) continue;
    }
    if (batch->kernels[k] == nullptr) {
      absl::StatusOr<KernelBuilds::Started> started = kernel_builds_.Start(job, lookup, owner);
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

// Until all have ended; once `interest` (may be null) is lost the batch wants none of them.
void PlanBuilds::WaitForKernels(Batch* batch, Interest* interest) {
  const CancelToken everybody;  // the pool ends every job, and when it stops at once
  bool wanted = true;
  auto look = [&] {
    if (!wanted || interest == nullptr || !interest->IsLost()) return;
    wanted = false;
    ++abandoned_;
    for (auto& [k, claim] : batch->claims) claim.Abandon();
  };
  for (auto& [k, claim] : batch->claims) {
    CompileResult result = claim.ticket().Wait(everybody, look);
    batch->results[k] = result.status();
    if (result.ok()) batch->kernels[k] = *std::move(result);
  }
}

BuiltOr PlanBuilds::BuildForAll(const WorkPtr& work, std::shared_ptr<const Planned> planned,
                                std::shared_ptr<Batch> batch, const FlightKey& key,
                                const WorkOwner& owner, Interest& interest) {
  BuiltOr built = BuildRounds(work, std::move(planned), batch, key, owner, interest);
  decltype(replanned_)::node_type ended;  // dies unlocked
  {
    MutexLock lock(&mutex_);
    ended = replanned_.extract(key);
  }
  // Callers of this flight, and who tells of what it is at, may hold claims a moment longer than it
  // lasts: who asks next is not to share a failure that has been answered.
  const auto retire = [](const Batch& held) {
    for (const auto& [k, claim] : held.claims) claim.RetireFailure();
  };
  retire(*batch);
  if (!ended.empty() && ended.mapped().batch != nullptr) retire(*ended.mapped().batch);
  return built;
}

BuiltOr PlanBuilds::BuildRounds(WorkPtr work, std::shared_ptr<const Planned> planned,
                                std::shared_ptr<Batch> batch, const FlightKey& key,
                                const WorkOwner& owner, Interest& interest) {
  auto built = std::make_shared<Built>();
  Alone alone = AloneOf(planned->stored->plan);
  bool lasting = true;
  std::set<Digest> made_here;  // kernels that were published on the way
  for (int round = 1;; ++round) {
    WaitForKernels(batch.get(), &interest);
    size_t before = alone.size();
    const fusion::Plan& plan = planned->stored->plan;
    const bool unregistered = Unregister(plan, batch.get(), &work);
    absl::Status isolated = work->options.lock != nullptr
                                ? CheckPinned(plan, batch->results)
                                : IsolateFailures(plan, batch->results, logger_, &alone);
    if (isolated.ok() && alone.size() == before && !unregistered) break;
    lasting &= std::none_of(batch->results.begin(), batch->results.end(), MayPass);
    // Kernels that others were told of stay to be had, whatever becomes of the plan.
    Bundle ready = BundleOf(nullptr, *batch);
    for (const auto& kernel : ready.kernels) made_here.insert(kernel->key);
    Publish(std::move(ready), &built->warnings, owner);
    RETURN_IF_ERROR(isolated);
    SetRound(key, {.number = round, .batch = nullptr});
    PlanOrigin origin;
    ASSIGN_OR_RETURN(planned, planning_.Plan(work, alone, {}, CancelToken(), &origin,
                                             /*observer=*/nullptr, owner));
    batch = StartKernels(*planned, owner);
    SetRound(key, {.number = round, .batch = batch});
  }
  lasting &= !registry_.MayPass(planned->stored->plan);
  registry_.NoteReady(planned->stored->plan);
  built->stored = planned->stored;
  built->kernels = batch->kernels;
  built->found = batch->found;
  const bool pending = planned->model != nullptr;
  // Before the claims of `batch` end.
  const bool stays = lasting && !(pending && IsKnown(*planned->stored));
  Publish(BundleOf(stays ? built->stored : nullptr, *batch), &built->warnings, owner);
  for (size_t k = 0; k < built->found.size(); ++k) {
    if (made_here.contains(built->kernels[k]->key)) built->found[k] = false;
  }
  if (pending) built->unsearched = {work, planned, lasting, owner};
  return BuiltOr(std::move(built));
}

// Whether the store has the plan, whose search may be further there.
bool PlanBuilds::IsKnown(const StoredPlan& pending) {
  const std::shared_ptr<const StoredPlan> known = store_.PeekPlan(pending.key);
  return known != nullptr && AloneOf(known->plan) == AloneOf(pending.plan) &&
         UnusedOf(known->plan) == UnusedOf(pending.plan);
}

// Whether the store has the plan with more of its kernels timed than this one, which was cut short.
bool PlanBuilds::IsFurther(const StoredPlan& tuned) {
  if (!GoesOn(tuned.plan.search) || !IsKnown(tuned)) return false;
  auto timed = [](const TileSearch& search) { return search.measured + search.recalled; };
  const std::shared_ptr<const StoredPlan> known = store_.PeekPlan(tuned.key);
  return known != nullptr && timed(known->plan.search) > timed(tuned.plan.search);
}

BuiltOr PlanBuilds::AwaitSearch(const FlightKey& key, const std::shared_ptr<const Built>& picks,
                                const CancelToken& waiter, Teller* teller, bool goes_on) {
  const Nanoseconds start = clock_.Now();
  absl::StatusOr<std::shared_ptr<Search>> joined = Join(key, picks, goes_on);
  if (!joined.ok()) {
    return WithoutSearch(*picks, Nanoseconds(0), "the service is busy with other searches");
  }
  const std::shared_ptr<Search> search = *joined;
  const int round = teller->round();
  const std::function<void()> tell = teller->Meanwhile([&] {
    Round now = RoundOf(*search);
    now.number += round;
    teller->Tell(now);
  });
  Nanoseconds leave = Nanoseconds::max();
  Nanoseconds answer = Nanoseconds::max();
  if (const std::optional<Nanoseconds> left = waiter.Remaining()) {
    const Nanoseconds finish = goes_on ? Nanoseconds(0) : TimeToFinish(*left);
    leave = start + *left - finish;
    answer = start + *left - finish / 2;
  }
  const CancelToken patience(waiter, leave);
  const CancelToken turn(patience, start + BudgetOf(picks->stored->plan.search.level).limit);
  BuiltOr built = search->result.Wait(turn, tell);
  if (!built.ok() && search->begun) built = search->result.Wait(patience, tell);
  const bool ends = Leave(key, search);
  // Not for a caller that is gone, though the search that it gave up may have its result at once.
  const bool gone = absl::IsCancelled(waiter.Check());
  if (!built.ok() && !gone && ends && search->begun) {
    built = search->result.Wait(CancelToken(waiter, answer), tell);
  }
  if (built.ok()) return built;
  if (absl::IsCancelled(waiter.Check())) return waiter.Check();
  return WithoutSearch(*picks, clock_.Now() - start,
                       search->begun ? "the search takes longer than this request may wait for it"
                                     : "the service is busy with other searches");
}

// A search of that key: the one that others want, or a new one. ResourceExhausted, Unavailable: no
// more of them may wait.
absl::StatusOr<std::shared_ptr<PlanBuilds::Search>> PlanBuilds::Join(
    const FlightKey& key, const std::shared_ptr<const Built>& picks, bool goes_on) {
  MutexLock lock(&mutex_);
  std::shared_ptr<Search>& search = searches_[key];
  if (search == nullptr) {
    search = std::make_shared<Search>(stopping_);
    absl::Status accepted =
        search_thread_.Submit([this, key, search, picks] { RunSearch(key, search, *picks); });
    if (!accepted.ok()) {
      searches_.erase(key);
      return accepted;
    }
  } else {
    ++searches_shared_;
  }
  ++search->waiters;
  ++searches_waiters_;
  search->goes_on |= goes_on;
  return search;
}

// True if nobody wants the search any more, which ends it.
bool PlanBuilds::Leave(const FlightKey& key, const std::shared_ptr<Search>& search) {
  --searches_waiters_;
  MutexLock lock(&mutex_);
  if (--search->waiters > 0 || search->goes_on) return false;
  search->given_up.Cancel();
  Forget(key, search);  // who comes now wants another one
  return true;
}

void PlanBuilds::Forget(const FlightKey& key, const std::shared_ptr<Search>& search) {
  auto known = searches_.find(key);
  if (known != searches_.end() && known->second == search) searches_.erase(known);
}

void PlanBuilds::RunSearch(const FlightKey& key, const std::shared_ptr<Search>& search,
                           const Built& picks) {
  search->begun = true;
  std::shared_ptr<const Built> built =
      search->given_up.Check().ok()
          ? SearchAndPlan(picks, search.get())
          : WithoutSearch(picks, Nanoseconds(0), "the search was given up before it began");
  {
    MutexLock lock(&mutex_);
    Forget(key, search);
  }
  search->result.Set(std::move(built));
}

// Never without a plan: where what was found cannot be planned with, the one that was there.
std::shared_ptr<const Built> PlanBuilds::SearchAndPlan(const Built& picks, Search* search) {
  const Built::Unsearched& from = *picks.unsearched;
  Bench bench(this, picks.kernels);  // its claims keep what it has made until that is published
  auto built = std::make_shared<Built>();
  built->warnings = picks.warnings;
  const Nanoseconds start = clock_.Now();
  TileSearch found = SearchFor(*from.work, *from.planned, search, &bench);
  built->searched = clock_.Now() - start;

  std::shared_ptr<Batch> batch;
  absl::StatusOr<std::shared_ptr<const StoredPlan>> tuned =
      PlanTuned(picks, found, search, bench, &batch);
  if (!tuned.ok()) {
    logger_.Error("tiles_not_planned",
                  {{"plan", picks.stored->key.ToHex()}, {"reason", Message(tuned.status())}});
    found = WithoutFindings(std::move(found), tuned.status());
  }
  if (tuned.ok() && *tuned != nullptr) {
    built->stored = *std::move(tuned);
    built->kernels = batch->kernels;
    built->found = batch->found;
  } else {
    built->stored = WithOutcome(*picks.stored, std::move(found));
    built->kernels = picks.kernels;
    built->found.assign(picks.kernels.size(), true);
    batch = nullptr;
  }
  const bool further = IsFurther(*built->stored);
  if (further) built->unsearched = picks.unsearched;
  const bool lasting = from.lasting && !registry_.MayPass(built->stored->plan) && !further;
  registry_.NoteReady(built->stored->plan);
  // Before the claims of `batch` and `bench` end.
  Bundle bundle{.plan = lasting ? built->stored : nullptr, .kernels = {}};
  if (batch != nullptr) bundle = BundleOf(bundle.plan, *batch);
  bench.AddFindings(&bundle);
  Publish(std::move(bundle), &built->warnings, from.owner);
  std::set<Digest> made_here;
  for (size_t k = 0; k < picks.kernels.size(); ++k) {
    if (!picks.found[k]) made_here.insert(picks.kernels[k]->key);
  }
  for (size_t k = 0; k < built->found.size(); ++k) {
    if (made_here.contains(built->kernels[k]->key)) built->found[k] = false;
  }
  return built;
}

// The plan of the fastest, with its kernels in `batch`; null if they are the model's picks.
absl::StatusOr<std::shared_ptr<const StoredPlan>> PlanBuilds::PlanTuned(
    const Built& picks, const TileSearch& found, Search* search, const Bench& bench,
    std::shared_ptr<Batch>* batch) {
  if (found.changed == 0) return nullptr;
  SetRound(search, {.number = 1, .batch = nullptr});
  const WorkPtr work =
      WithSearch(picks.unsearched->work, std::make_shared<const TileSearch>(found));
  PlanOrigin origin;
  ASSIGN_OR_RETURN(std::shared_ptr<const Planned> planned,
                   planning_.Plan(work, AloneOf(picks.stored->plan), {}, CancelToken(), &origin));
  *batch = StartKernels(*planned, /*owner=*/{}, &bench);
  SetRound(search, {.number = 1, .batch = *batch});
  WaitForKernels(batch->get(), /*interest=*/nullptr);
  for (const absl::Status& result : (*batch)->results) RETURN_IF_ERROR(result);
  const TileSearch& kept = planned->stored->plan.search;
  if (kept.changed < found.changed) {
    logger_.Error("tiles_not_planned",
                  {{"plan", picks.stored->key.ToHex()}, {"kernels", found.changed - kept.changed}});
  }
  return planned->stored;
}

TileSearch PlanBuilds::SearchFor(const Work& work, const Planned& planned, Search* search,
                                 Bench* bench) {
  const CancelToken until(search->given_up, clock_.Now() + BudgetOf(work.options.opt_level).limit);
  PlanSearch tried(work, planned, toolchain_, until);
  auto count = std::make_shared<SearchCount>();
  count->total = static_cast<int>(tried.task().kernels.size());
  SetRound(search, {.number = 0, .batch = nullptr, .search = count});
  TileSearch out = SearchTiles(tried.task(), *bench, search->given_up, until, clock_,
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

void PlanBuilds::SetRound(Search* search, Round round) {
  MutexLock lock(&mutex_);
  search->round = std::move(round);
}

PlanBuilds::Round PlanBuilds::RoundOf(const Search& search) const {
  MutexLock lock(&mutex_);
  return search.round;
}

Bundle PlanBuilds::BundleOf(std::shared_ptr<const StoredPlan> plan, const Batch& batch) {
  Bundle bundle{.plan = std::move(plan), .kernels = {}};
  for (size_t k = 0; k < batch.kernels.size(); ++k) {
    if (!batch.found[k] && batch.kernels[k] != nullptr) bundle.kernels.push_back(batch.kernels[k]);
  }
  return bundle;
}

void PlanBuilds::Publish(Bundle bundle, std::vector<std::string>* warnings,
                         const WorkOwner& owner) {
  bundle.tenant = owner.tenant;
  absl::Status status = store_.PutBundle(bundle);
  if (status.ok()) return;
  logger_.Warning("bundle_not_stored", {{"plan", bundle.plan ? bundle.plan->key.ToHex() : ""},
                                        {"kernels", bundle.kernels.size()},
                                        {"reason", Message(status)}});
  warnings->push_back(StrCat(kNotStored, Message(status)));
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

KernelReply PlanBuilds::GetKernel(const Digest& key, const CancelToken& cancel,
                                  std::optional<std::string_view> tenant) {
  auto hidden = [&](std::string_view owner) { return tenant.has_value() && owner != *tenant; };
  const KernelReply unknown = {
      KernelState::kFailed, nullptr,
      NotFound("no kernel ", key.ToHex(), ": neither stored nor being compiled; plan again")};
  std::optional<KernelBuilds::Claim> claim = kernel_builds_.Join(key);
  if (claim.has_value() && hidden(claim->ticket().tenant())) return unknown;
  if (Found<KernelArtifact> found = store_.GetKernel({key})) {
    if (hidden(TenantOfKey(found.value->full_key))) return unknown;
    return {KernelState::kReady, found.value, absl::OkStatus()};
  }
  if (claim.has_value()) {
    CompileResult result = claim->ticket().Wait(cancel);
    if (result.ok()) return {KernelState::kReady, *std::move(result), absl::OkStatus()};
    bool gave_up = !cancel.Check().ok();
    return {gave_up ? KernelState::kPending : KernelState::kFailed, nullptr, result.status()};
  }
  std::optional<FailureCache::Failure> failure = kernel_builds_.Failure(key);
  if (!failure.has_value() || hidden(failure->tenant)) return unknown;
  return {KernelState::kFailed, nullptr, failure->why};
}

}  // namespace fusion
