#include "core/tune/tile_search.h"

#include <algorithm>
#include <cmath>

#include "core/base/statistics/median_interval.h"
#include "core/compile/kernel_failure.h"

namespace fusion {
namespace {

// Raise it when races with the same digest are measured differently.
constexpr int kRaceVersion = 2;

constexpr std::string_view kOutOfTime = "the time for the search was over";
constexpr std::string_view kRaceOver = "the time for its race was over";
constexpr std::string_view kPickNotRun = "the model's pick was not run";

// Digest of the kernels of a race and of everything that can change their times.
Digest NameOf(const SearchTask& task, const SearchedKernel& kernel,
              const std::vector<SearchedTiling>& others) {
  FieldHasher h;
  h.Add("race", kRaceVersion).Add("device", task.label).Add("threads", task.threads);
  h.Add("machine", task.machine);
  h.Add("displaced_bytes", kernel.displaced_bytes);
  h.Add("kernel", BytesOf(kernel.pick.job.key));
  for (const SearchedTiling& other : others) h.Add("kernel", BytesOf(other.job.key));
  return Sha256(h.bytes());
}

TriedTiling TriedOf(const SearchedTiling& tiling) {
  return {.choice = tiling.choice, .tiles = tiling.tiles, .estimated_us = tiling.estimated_us};
}

void SetTimes(const std::vector<double>& us, TriedTiling* tiling) {
  if (us.empty()) return;
  const MedianInterval interval = MedianOf(us);
  tiling->runs = static_cast<int>(us.size());
  tiling->median_us = interval.median;
  tiling->low_us = interval.low;
  tiling->high_us = interval.high;
}

// Three digits behind the point.
double Times(double ratio) { return std::round(ratio * 1000) / 1000; }

// Decides from the pairs. `over`: why there are no more of them.
void Decide(const RaceTimes& times, std::string_view over, TunedKernel* kernel) {
  int timed = 0;
  for (const TriedTiling& tiling : kernel->tried) timed += tiling.runs > 0 ? 1 : 0;
  if (kernel->rival == 0) {
    kernel->reason = timed > 1 ? "none of the others was faster" : "no other was timed";
    return;
  }
  kernel->pairs = static_cast<int>(times.first_us.size());
  if (kernel->pairs < kLeastPairs) {
    kernel->reason = StrCat("cut ", kernel->rival, " seemed faster; ", over, " before it was sure");
    return;
  }
  const MedianInterval ratio = MedianOf(Ratios(times.rival_us, times.first_us));
  kernel->ratio = ratio.median;
  kernel->ratio_low = ratio.low;
  kernel->ratio_high = ratio.high;
  const std::string figures =
      StrCat(Times(ratio.median), " of its time (95 % interval ", Times(ratio.low), " .. ",
             Times(ratio.high), " of ", kernel->pairs, " pairs)");
  if (ratio.high < kMostRatio) {
    kernel->chosen = kernel->rival;
    kernel->reason = StrCat("cut ", kernel->rival, " is faster than the model's pick: ", figures);
  } else {
    kernel->reason =
        StrCat("cut ", kernel->rival, " is not surely faster than the model's pick: ", figures,
               "; expected below ", kMostRatio);
  }
}

// Whether a race ran to its end, so that another plan may have its result.
bool IsWhole(const KernelRace& race, const RaceTimes& times) {
  const bool runs =
      std::all_of(times.runners.begin(), times.runners.end(), [&](const RaceTimes::Runner& runner) {
        return !runner.refusal.empty() || static_cast<int>(runner.us.size()) >= race.least_runs;
      });
  return runs && (times.rival == 0 || static_cast<int>(times.first_us.size()) >= race.least_pairs);
}

class Searcher {
 public:
  Searcher(const SearchTask& task, TileBench& bench, const CancelToken& request,
           const CancelToken& until)
      : task_(task), bench_(bench), request_(request), until_(until) {}

  TileSearch Run(const std::function<void(int)>& on_kernel) {
    out_.level = task_.level;
    out_.state = TileSearchState::kDone;
    out_.reason = task_.left_out;
    if (task_.kernels.empty()) {
      AddReason("no kernel to search for");
      return std::move(out_);
    }
    if (!CanRace()) return std::move(out_);
    for (const SearchedKernel& kernel : task_.kernels) {
      Search(kernel);
      if (on_kernel) on_kernel(static_cast<int>(out_.kernels.size()));
    }
    Conclude();
    return std::move(out_);
  }

 private:
  void AddReason(std::string_view reason) {
    StrAppend(&out_.reason, StrCat(out_.reason.empty() ? "" : "; ", reason));
  }

  // Asks a worker whether it could run kernels as the plan would have them run.
  bool CanRace() {
    const CompileJob& first = task_.kernels[0].pick.job;
    absl::StatusOr<RaceTimes> times = bench_.Race({.label = first.label,
                                                   .backend = first.backend,
                                                   .isa = first.isa,
                                                   .runners = {},
                                                   .threads = task_.threads},
                                                  until_);
    if (times.ok() && times->refusal.empty()) return true;
    if (times.ok()) {
      out_.state = TileSearchState::kNone;
      AddReason(times->refusal);
    } else {
      out_.state = TileSearchState::kCutShort;
      AddReason(Message(times.status()));
    }
    return false;
  }

  void Search(const SearchedKernel& kernel) {
    out_.kernels.push_back(
        {.ops = kernel.ops, .group = kernel.group, .tried = {TriedOf(kernel.pick)}, .reason = {}});
    TunedKernel& tuned = out_.kernels.back();
    if (Over()) return LeaveOut(&tuned);
    if (kernel.run_bytes > kMaxRaceBytes) {
      tuned.reason = StrCat(kPickNotRun, ": its tensors take ", HumanBytes(kernel.run_bytes),
                            "; limit ", HumanBytes(kMaxRaceBytes));
      return;
    }
    absl::StatusOr<std::vector<SearchedTiling>> others =
        kernel.others(BudgetOf(task_.level).others);
    if (!others.ok()) return LeaveOut(&tuned);
    if (others->empty()) {
      tuned.reason = "there is no other way to cut it that promises as much";
      return;
    }
    const Digest name = NameOf(task_, kernel, *others);
    if (std::optional<TunedKernel> known = bench_.Recall(kernel.pick.job.key, name)) {
      known->ops = tuned.ops;
      known->group = tuned.group;
      known->recalled = true;
      tuned = *std::move(known);
      out_.recalled += Timed(tuned);
      out_.changed += tuned.chosen > 0 ? 1 : 0;
      return;
    }
    for (const SearchedTiling& other : *others) tuned.tried.push_back(TriedOf(other));
    Measure(kernel, *others, name, &tuned);
    out_.measured += Timed(tuned);
    out_.changed += tuned.chosen > 0 ? 1 : 0;
  }

  // Candidates that were timed, the pick not counted.
  static int64_t Timed(const TunedKernel& tuned) {
    int64_t timed = 0;
    for (size_t i = 1; i < tuned.tried.size(); ++i) timed += tuned.tried[i].runs > 0 ? 1 : 0;
    return timed;
  }

  // Whether there is no time for another race.
  bool Over() const {
    return !until_.Check().ok() || until_.Remaining().value_or(Nanoseconds::max()) <= kRaceWayBack;
  }

  void LeaveOut(TunedKernel* tuned) {
    tuned->reason = std::string(kOutOfTime);
    ++late_;
  }

  // What a later search may still do for a kernel.
  struct Missed {
    bool late = false;     // there was no time for it
    bool passing = false;  // it failed for a reason that may pass
  };

  // Notes why something was not made or timed.
  std::string Miss(const absl::Status& why, Missed* missed) const {
    // Because the search is over; a compiler may also run out of time.
    if (WasGivenUp(why) && Over()) {
      missed->late = true;
      return std::string(kOutOfTime);
    }
    missed->passing |= MayPass(why) || !IsKernelsFault(why);
    return std::string(Message(why));
  }

  void Measure(const SearchedKernel& kernel, const std::vector<SearchedTiling>& others,
               const Digest& name, TunedKernel* tuned) {
    Missed missed;
    MeasureOnce(kernel, others, name, tuned, &missed);
    late_ += missed.late ? 1 : 0;
    passing_ += missed.passing ? 1 : 0;
  }

  void MeasureOnce(const SearchedKernel& kernel, const std::vector<SearchedTiling>& others,
                   const Digest& name, TunedKernel* tuned, Missed* missed) {
    std::vector<CompileJob> jobs = {kernel.pick.job};
    for (const SearchedTiling& other : others) jobs.push_back(other.job);
    const std::vector<CompileResult> made = bench_.Make(jobs, until_);
    if (!made[0].ok()) {
      const std::string why = Miss(made[0].status(), missed);
      tuned->reason = missed->late ? why : StrCat("the model's pick cannot be timed: ", why);
      return;
    }
    KernelRace race{.label = jobs[0].label,
                    .backend = jobs[0].backend,
                    .isa = jobs[0].isa,
                    .runners = {},
                    .threads = task_.threads,
                    .displaced_bytes = kernel.displaced_bytes,
                    .limit = BudgetOf(task_.level).race_limit};
    std::vector<size_t> entered;  // positions in `tried`
    for (size_t i = 0; i < made.size(); ++i) {
      std::string& reason = tuned->tried[i].reason;
      if (!made[i].ok()) {
        reason = Miss(made[i].status(), missed);
        continue;
      }
      const KernelArtifact& artifact = **made[i];
      if ((*made[0])->check.verified && !artifact.check.verified) {
        reason = StrCat("unverified: ", artifact.check.reason);
        continue;
      }
      race.runners.push_back(
          {jobs[i].symbol, artifact.binary, jobs[i].schedule, jobs[i].reference});
      entered.push_back(i);
    }
    if (entered.size() < 2) {
      tuned->reason = missed->late ? std::string(kOutOfTime) : "no other was timed";
      return;
    }
    absl::StatusOr<RaceTimes> times = bench_.Race(race, until_);
    if (!times.ok()) {
      const std::string why = Miss(times.status(), missed);
      tuned->reason = missed->late ? why : StrCat("it could not be timed: ", why);
      return;
    }
    if (!times->refusal.empty()) {
      tuned->reason = times->refusal;
      return;
    }
    for (size_t i = 0; i < entered.size(); ++i) {
      const size_t at = entered[i];
      Note(jobs[0].key, at == 0 ? kernel.pick : others[at - 1], *times, static_cast<int>(i));
    }
    const bool whole = IsWhole(race, *times);
    missed->late |= !whole && Over();
    const std::string_view over = Over() ? kOutOfTime : kRaceOver;
    const std::string& refused = times->runners[0].refusal;
    for (size_t i = 0; i < entered.size(); ++i) {
      TriedTiling& tiling = tuned->tried[entered[i]];
      SetTimes(times->runners[i].us, &tiling);
      tiling.reason = times->runners[i].refusal;
      if (tiling.runs == 0 && tiling.reason.empty()) {
        tiling.reason = std::string(refused.empty() ? over : kPickNotRun);
      }
    }
    if (refused.empty()) {
      tuned->rival = static_cast<int>(entered[static_cast<size_t>(times->rival)]);
      Decide(*times, over, tuned);
    } else {
      tuned->reason = StrCat(kPickNotRun, ": ", refused);
    }
    if (!missed->late && !missed->passing && whole) bench_.Keep(jobs[0].key, {name, *tuned});
  }

  void Note(const Digest& pick, const SearchedTiling& tiling, const RaceTimes& times, int runner) {
    std::vector<double> us = times.runners[static_cast<size_t>(runner)].us;
    if (times.rival > 0 && (runner == 0 || runner == times.rival)) {
      const std::vector<double>& pairs = runner == 0 ? times.first_us : times.rival_us;
      us.insert(us.end(), pairs.begin(), pairs.end());
    }
    if (!us.empty()) bench_.NoteTimes(pick, tiling, us);
  }

  void Conclude() {
    int64_t displaced = 0;
    for (const SearchedKernel& kernel : task_.kernels) {
      displaced = std::max(displaced, kernel.displaced_bytes);
    }
    out_.conditions =
        StrCat(task_.threads, task_.threads == 1 ? " thread" : " threads",
               ", on the machine of the service (", task_.machine, "); before every run up to ",
               HumanBytes(displaced),
               " of other memory are touched, then the activations that the kernel reads");
    const absl::Status wanted = request_.Check();
    if (!wanted.ok()) {
      out_.state = TileSearchState::kCutShort;
      AddReason(absl::IsCancelled(wanted)
                    ? "nobody waits for its end any more: the request was given up, its deadline "
                      "came, or the service stops"
                    : "the deadline of the request came before the end of the search");
      return;
    }
    if (late_ > 0) {
      // Done if only the level's own limit ended it.
      const bool waited = bench_.waited_for_others();
      if (waited) out_.state = TileSearchState::kCutShort;
      AddReason(StrCat("level ", task_.level, " has ",
                       ToMilliseconds(BudgetOf(task_.level).limit) / 1000,
                       " s: they were over before ", Kernels(late_), " searched for",
                       waited ? ", while the workers made kernels for other requests" : ""));
    }
    if (passing_ > 0) {
      out_.state = TileSearchState::kCutShort;
      AddReason(StrCat("not all cuts of ", passing_, passing_ == 1 ? " kernel" : " kernels",
                       " could be tried now"));
    }
  }

  static std::string Kernels(int count) {
    return StrCat(count, count == 1 ? " kernel was" : " kernels were");
  }

  const SearchTask& task_;
  TileBench& bench_;
  const CancelToken& request_;
  const CancelToken& until_;
  TileSearch out_;
  int late_ = 0;     // kernels that there was no time for
  int passing_ = 0;  // kernels of which something failed that may pass
};

}  // namespace

// What levels promise (core/pipeline/README.md). A race takes half a second but where its kernels
// take longer than 10 ms; the largest kernel of a model may have a quarter of the time.
SearchBudget BudgetOf(int opt_level) {
  using std::chrono::seconds;
  const seconds limit(SecondsOfLevel(opt_level));
  switch (opt_level) {
    case 1:
      return {3, limit, seconds(5)};
    case 2:
      return {7, limit, seconds(15)};
    case 3:
      return {15, limit, seconds(60)};
    default:
      return {};
  }
}

TileSearch SearchTiles(const SearchTask& task, TileBench& bench, const CancelToken& request,
                       const CancelToken& until, const Clock& clock,
                       const std::function<void(int done)>& on_kernel) {
  const Nanoseconds start = clock.Now();
  TileSearch out = Searcher(task, bench, request, until).Run(on_kernel);
  out.seconds = ToMilliseconds(clock.Now() - start) / 1e3;
  return out;
}
}  // namespace fusion
