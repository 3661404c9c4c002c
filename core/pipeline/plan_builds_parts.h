#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/key_field.h"
#include "core/device/host_cpu.h"
#include "core/pipeline/plan_builds.h"

namespace fusion {

// Nested classes of PlanBuilds; included by its own sources only.

/// Reports progress to an observer; equal counts in a row are reported once.
class PlanBuilds::ProgressReporter {
 public:
  explicit ProgressReporter(StageObserver* observer) : observer_(observer) {}

  void Report(const Round& round) {
    if (observer_ == nullptr || round.number < round_) return;  // its build has just ended
    if (round.number > round_) {
      round_ = round.number;
      reported_ = {};
      observer_->OnStage("plan", 0, 0);
    }
    if (round.search != nullptr) {
      ReportCounts(kSearchStage, round.search->done, round.search->total);
    } else if (round.batch != nullptr) {
      ReportCounts(kCompileStage, DoneOf(*round.batch),
                   static_cast<int>(round.batch->found.size()));
    }
  }
  void ReportAll(int kernels) {
    if (observer_ != nullptr) ReportCounts(kCompileStage, kernels, kernels);
  }
  /// `tell` if the observer follows work of other threads (StageObserver::FollowsOthers), else
  /// null. Callers call it before and during a wait.
  std::function<void()> Meanwhile(std::function<void()> tell) const {
    const bool follows = observer_ != nullptr && observer_->FollowsOthers();
    return follows ? std::move(tell) : nullptr;
  }
  int round() const { return round_; }

 private:
  using Counts = std::tuple<std::string, int, int>;

  void ReportCounts(std::string_view stage, int done, int total) {
    Counts counts(stage, done, total);
    if (std::exchange(reported_, counts) != counts) observer_->OnStage(stage, done, total);
  }

  StageObserver* const observer_;
  int round_ = 0;
  std::optional<Counts> reported_;
};

/// Compiles and times the candidates of one search on the workers of the service. Not thread-safe.
class PlanBuilds::Bench final : public TileBench {
 public:
  /// `picks`: the plan whose tiles are searched, with its kernels.
  Bench(PlanBuilds* builds, const Built& picks) : builds_(*builds), stored_(*picks.stored) {
    for (const auto& kernel : picks.kernels) known_[kernel->key] = kernel;
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
      // In the background: first builds of other requests take precedence.
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
    // A race that was given up still runs and would disturb this one: wait until its worker has
    // ended it.
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

  void NoteTimes(const Digest& pick, const SearchedTiling& tiling,
                 const std::vector<double>& us) override {
    if (builds_.options_.on_timed == nullptr || tiling.form.empty()) return;
    const Plan& plan = stored_.plan;
    KernelTimings timings{.device = {plan.target, plan.isa, plan.threads},
                          .kernel = tiling.job.key,
                          .machine = HostCpuName(),
                          .tenant = std::string(TenantOfKey(stored_.full_key)),
                          .choice = pick,
                          .model_name = stored_.model_name,
                          .bound = tiling.bound,
                          .form = tiling.form,
                          .terms = tiling.terms};
    AddCalls(static_cast<int64_t>(us.size()), &timings.times);
    AddNewest(us, KernelTimings::kMaxSamples, &timings.times);
    builds_.options_.on_timed(timings);
  }

  /// Adds to `bundle` the kernels with new measurements. Measurements that other searches have
  /// stored meanwhile are kept.
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

  /// A kernel from `picks` or made by this object, else null.
  std::shared_ptr<const KernelArtifact> Known(const Digest& key) const {
    auto known = known_.find(key);
    return known == known_.end() ? nullptr : known->second;
  }
  int64_t dropped() const { return dropped_; }

 private:
  // `own`: submitted jobs of this search that have not ended.
  void NoteOthers(int64_t own) {
    const WorkerPoolStats now = builds_.workers_.Stats();
    waited_ |= now.queued + now.running > own;
  }

  PlanBuilds& builds_;
  const StoredPlan& stored_;
  std::map<Digest, std::shared_ptr<const KernelArtifact>> known_;
  std::deque<KernelBuilds::Claim> claims_;
  std::map<Digest, std::vector<MeasuredTiles>> findings_;
  int64_t dropped_ = 0;
  bool waited_ = false;
};

}  // namespace fusion
