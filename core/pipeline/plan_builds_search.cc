#include <algorithm>
#include <optional>

#include "core/pipeline/plan_builds_parts.h"
#include "core/pipeline/plan_search.h"
#include "core/wire/stored_plan.h"

namespace fusion {
namespace {

// A search whose result could not be planned: all kernels keep the model's tiling, for good unless
// the failure may pass.
TileSearch WithoutFindings(TileSearch search, const absl::Status& why) {
  for (TunedKernel& kernel : search.kernels) kernel.chosen = 0;
  search.changed = 0;
  StrAppend(&search.reason, StrCat(search.reason.empty() ? "" : "; ",
                                   "what is faster was not planned with: ", Message(why)));
  if (MayPass(why) || !IsKernelsFault(why)) search.state = TileSearchState::kCutShort;
  return search;
}

// The same plan with the outcome of its search.
std::shared_ptr<const StoredPlan> WithOutcome(const StoredPlan& stored, TileSearch search) {
  Plan plan = stored.plan;
  plan.search = std::move(search);
  return std::make_shared<const StoredPlan>(MakeStoredPlan(
      stored.full_key, plan, stored.created_unix_ms, stored.model_name, stored.outline));
}

// The part of a caller's remaining time that is reserved for planning and publishing the result; if
// that takes longer, half of it remains for the answer. Chosen: planning takes milliseconds for
// most models and a second for the largest (tests/bench/plan_scale).
Nanoseconds TimeToFinish(Nanoseconds left) {
  constexpr double kPart = 0.1;
  constexpr Nanoseconds kMost = std::chrono::seconds(5);
  return std::min(kMost, std::chrono::duration_cast<Nanoseconds>(left * kPart));
}

// The model's tilings, for a caller that cannot wait for the search.
std::shared_ptr<const Built> WithoutSearch(const Built& picks, Nanoseconds waited,
                                           std::string_view why) {
  auto built = std::make_shared<Built>(picks);
  built->searched = waited;
  built->warnings.push_back(StrCat("opt_level ", picks.stored->plan.search.level, ": ", why,
                                   "; the next request goes on"));
  return built;
}

}  // namespace

// True if `tuned` was cut short and the stored plan has more kernels timed.
bool PlanBuilds::IsFurther(const StoredPlan& tuned) {
  if (!GoesOn(tuned.plan.search) || !IsKnown(tuned)) return false;
  auto timed = [](const TileSearch& search) { return search.measured + search.recalled; };
  const std::shared_ptr<const StoredPlan> known = store_.PeekPlan(tuned.key);
  return known != nullptr && timed(known->plan.search) > timed(tuned.plan.search);
}

BuiltOr PlanBuilds::AwaitSearch(const FlightKey& key, const std::shared_ptr<const Built>& picks,
                                const CancelToken& waiter, ProgressReporter* reporter,
                                bool goes_on) {
  const Nanoseconds start = clock_.Now();
  absl::StatusOr<std::shared_ptr<Search>> joined = Join(key, picks, goes_on);
  if (!joined.ok()) {
    return WithoutSearch(*picks, Nanoseconds(0), "the service is busy with other searches");
  }
  const std::shared_ptr<Search> search = *joined;
  const int round = reporter->round();
  const std::function<void()> tell = reporter->Meanwhile([&] {
    Round now = RoundOf(*search);
    now.number += round;
    reporter->Report(now);
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
  // Not for a cancelled caller, even if its search ends at once.
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

// Joins or starts the search of `key`. ResourceExhausted, Unavailable: the queue of searches is
// full or stopped.
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

// Returns true if no waiter remains, which ends the search.
bool PlanBuilds::Leave(const FlightKey& key, const std::shared_ptr<Search>& search) {
  --searches_waiters_;
  MutexLock lock(&mutex_);
  if (--search->waiters > 0 || search->goes_on) return false;
  search->given_up.Cancel();
  Forget(key, search);  // later callers start a new one
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

// Always returns a plan: the first one if the result of the search cannot be planned.
std::shared_ptr<const Built> PlanBuilds::SearchAndPlan(const Built& picks, Search* search) {
  const Built::Unsearched& from = *picks.unsearched;
  Bench bench(this, picks);  // its claims keep what it has made until that is published
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

// The plan with the fastest tilings, with its kernels in `batch`; null if they are the model's.
absl::StatusOr<std::shared_ptr<const StoredPlan>> PlanBuilds::PlanTuned(
    const Built& picks, const TileSearch& found, Search* search, const Bench& bench,
    std::shared_ptr<Batch>* batch) {
  if (found.changed == 0) return nullptr;
  SetRound(search, {.number = 1, .batch = nullptr});
  const WorkPtr work =
      WithSearch(picks.unsearched->work, std::make_shared<const TileSearch>(found));
  PlanOrigin origin;
  ASSIGN_OR_RETURN(
      std::shared_ptr<const Planned> planned,
      planning_.Plan(work, UnfusedNodesOf(picks.stored->plan), {}, CancelToken(), &origin));
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

void PlanBuilds::SetRound(Search* search, Round round) {
  MutexLock lock(&mutex_);
  search->round = std::move(round);
}

PlanBuilds::Round PlanBuilds::RoundOf(const Search& search) const {
  MutexLock lock(&mutex_);
  return search.round;
}

}  // namespace fusion
