#include "core/learn/learner.h"

#include <algorithm>
#include <cmath>

#include "core/base/key_field.h"
#include "core/base/statistics/quantile.h"
#include "core/benefit/calibrate/terms.h"
#include "core/bundle/report.h"
#include "core/learn/texts.h"

namespace fusion {
namespace {

// What is remembered at most; all of it can be learned again.
constexpr size_t kMaxScopes = 128;
constexpr size_t kMaxVoters = 64;  // of a scope
constexpr size_t kMaxGraphs = 256;
constexpr size_t kMaxPlansOfGraph = 8;
constexpr size_t kMaxMoves = 1024;
constexpr size_t kMaxSettled = 8192;
constexpr size_t kMaxPreviews = 16;
constexpr size_t kMaxKernels = 1024;  // of a plan that is looked at
constexpr double kLeastGain = 0.03;
// A canary may estimate its kernels worse than the constants in force by this much.
constexpr double kCanaryNoise = 0.02;

double MedianUs(const KernelTimings& t) {
  return Quantile(std::vector<double>(t.times.samples_us.begin(), t.times.samples_us.end()), 0.5);
}

std::string VoterName(const KernelTimings& t) {
  return StrCat(t.tenant, "\n", t.machine, "\n", t.trusted);
}

// ln(measured / expected) of each kernel.
std::vector<double> Distances(const std::vector<KernelTimings>& measured,
                              const CostFactors& factors) {
  std::vector<double> out;
  for (const KernelTimings& t : measured) {
    if (t.times.samples_us.empty()) continue;
    const double expected = TimeOf(t.terms, factors);
    if (expected > 0) out.push_back(std::log(MedianUs(t) / expected));
  }
  return out;
}

double MedianError(const std::vector<KernelTimings>& measured, const CostFactors& factors) {
  std::vector<double> errors = Distances(measured, factors);
  for (double& error : errors) error = std::abs(error);
  return errors.empty() ? 0 : Quantile(std::move(errors), 0.5);
}

// What plans of one graph have in common.
std::string GraphOf(std::string_view full_key) {
  while (const std::optional<FramedField> field = NextFramedField(&full_key)) {
    if (field->label == "graph") return Sha256(field->value).ToHex();
  }
  return "";
}

template <typename Key, typename Value>
void Bound(size_t most, std::map<Key, Value>* map) {
  // Any entry: what is dropped is learned again.
  while (map->size() > most) map->erase(map->begin());
}

}  // namespace

Learner::Learner(const LearnerOptions& options, Store& plans, TimingSource timings, EpochBook& book,
                 Callbacks callbacks, Logger& logger, const Clock& clock)
    : options_(options),
      plans_(plans),
      timings_(std::move(timings)),
      book_(book),
      callbacks_(std::move(callbacks)),
      logger_(logger),
      clock_(clock) {}

int64_t Learner::drifts() const {
  MutexLock lock(&mutex_);
  return drifts_;
}

std::map<TimedDevice, double> Learner::MeasuredOverExpected() const {
  std::vector<std::pair<int64_t, const std::pair<const ScopeKey, Scope>*>> found;
  MutexLock lock(&mutex_);
  for (const auto& entry : scopes_) {
    if (entry.first.first.empty() && entry.second.distances > 0) {
      found.emplace_back(entry.second.reports, &entry);
    }
  }
  std::sort(found.begin(), found.end(), std::greater<>());
  if (found.size() > kMaxShownDevices) found.resize(kMaxShownDevices);
  std::map<TimedDevice, double> out;
  for (const auto& [reports, entry] : found) {
    out[entry->first.second] = std::exp(entry->second.distance);
  }
  return out;
}

// The scopes that a report counts for: that of the plan first.
std::vector<std::string> Learner::ScopesOf(const StoredPlan& stored, const KernelTimings& of) {
  const std::string_view tenant = TenantOfKey(stored.full_key);
  const bool shared = of.tenant.empty() || of.trusted;
  std::vector<std::string> out;
  if (!tenant.empty() && tenant == of.tenant) out.emplace_back(tenant);
  if (shared) out.emplace_back();
  return out;
}

Learner::Scope& Learner::ScopeOf(const ScopeKey& key) {
  auto known = scopes_.find(key);
  if (known != scopes_.end()) return known->second;
  Bound(kMaxScopes - 1, &scopes_);
  Scope& scope = scopes_[key];
  scope.pause = options_.first_pause;
  return scope;
}

MeasuredGroups Learner::GroupsOf(const StoredPlan& stored, const KernelTimings& voter) {
  const Plan& plan = stored.plan;
  if (plan.kernels.size() > kMaxKernels) return {};
  return MeasuredGroupsOf(plan, [&](const Digest& kernel, const std::string& isa) {
    KernelTimings name;
    name.device = {plan.target, isa, plan.threads};
    name.kernel = kernel;
    name.machine = voter.machine;
    name.tenant = voter.tenant;
    name.trusted = voter.trusted;
    return timings_.read(KeyOf(name));
  });
}

void Learner::OnReport(const StoredPlan& stored, const std::vector<KernelTimings>& measured) {
  if (measured.empty()) return;
  const KernelTimings& of = measured.front();
  const std::vector<std::string> scopes = ScopesOf(stored, of);
  if (scopes.empty()) return;
  const MeasuredGroups groups = GroupsOf(stored, of);
  const std::string voter = VoterName(of);
  const bool own = scopes.front() == TenantOfKey(stored.full_key);
  MutexLock lock(&mutex_);
  for (const std::string& tenant : scopes) {
    const ScopeKey key(tenant, of.device);
    Scope& scope = ScopeOf(key);
    const PlanCalibration in_force = book_.InForce(tenant, of.device);
    ++scope.reports;
    NoteDrift(measured, in_force, key, &scope);
    NotePlan(stored, groups, voter, &scope);
    // The rest is about the plan itself.
    if (tenant != scopes.front() || !own) continue;
    JudgeCanary(stored, measured, key, &scope);
    JudgeMove(stored, groups, voter);
    if (callbacks_.stays(stored.key) || stored.plan.search.level > 0) continue;
    AskForUndo(stored, groups, voter, of, scope);
    AskForMove(stored, groups, voter, in_force);
  }
}

void Learner::OnTiming(const KernelTimings& measured) {
  MutexLock lock(&mutex_);
  ++ScopeOf({measured.tenant, measured.device}).reports;
}

void Learner::NoteDrift(const std::vector<KernelTimings>& measured, const PlanCalibration& in_force,
                        const ScopeKey& key, Scope* scope) {
  std::vector<double> distances = Distances(measured, in_force.factors);
  if (distances.empty()) return;
  if (std::exchange(scope->drift_epoch, in_force.epoch) != in_force.epoch) {
    scope->drift.clear();
    scope->distances = 0;
  }
  const std::string voter = VoterName(measured.front());
  if (!scope->drift.contains(voter)) Bound(kMaxVoters - 1, &scope->drift);
  PageHinkley& detector = scope->drift.try_emplace(voter, DriftDetector()).first->second;
  const double distance = Quantile(std::move(distances), 0.5);
  // Starts as the mean of the first ones.
  const double weight = 1.0 / static_cast<double>(std::min<int64_t>(++scope->distances, 32));
  scope->distance += weight * (distance - scope->distance);
  if (!detector.Add(distance)) return;
  ++drifts_;
  scope->drifted = true;
  scope->pause = options_.first_pause;
  logger_.Warning("drift", {{"target", key.second.target},
                            {"threads", key.second.threads},
                            {"tenant", key.first},
                            {"machine", measured.front().machine}});
}

void Learner::NotePlan(const StoredPlan& stored, const MeasuredGroups& groups,
                       std::string_view voter, Scope* scope) {
  const std::optional<PlanTime> time = PlanTimeOf(stored.plan, groups);
  if (!time.has_value() || time->us <= 0) return;
  RecentPlan plan{.key = stored.key, .fusion = stored.plan.fusion};
  plan.measured.measured_us = time->us;
  for (const PlanLaunch& launch : stored.plan.launches) {
    plan.measured.launches.push_back(
        {stored.plan.kernels[static_cast<size_t>(launch.kernel)].key.ToHex(),
         stored.plan.groups[static_cast<size_t>(launch.group)].terms});
  }
  const std::string graph = StrCat(GraphOf(stored.full_key), "\n", voter);
  if (!scope->plans.contains(graph)) Bound(kMaxGraphs - 1, &scope->plans);
  std::vector<RecentPlan>& plans = scope->plans[graph];
  std::erase_if(plans, [&](const RecentPlan& p) { return p.key == stored.key; });
  if (plans.size() >= kMaxPlansOfGraph) plans.erase(plans.begin());
  plans.push_back(std::move(plan));
}

void Learner::JudgeCanary(const StoredPlan& stored, const std::vector<KernelTimings>& measured,
                          const ScopeKey& key, Scope* scope) {
  const int64_t number = stored.plan.calibration.epoch;
  if (number == 0) return;
  const std::optional<Epoch> epoch = book_.UnderTrial(key.first, key.second);
  if (!epoch.has_value() || epoch->number != number || epoch->state() != EpochState::kCanary) {
    return;
  }
  if (scope->canary_epoch != number) {
    scope->canary_epoch = number;
    scope->canary_reports = 0;
    scope->canary_error = scope->usual_error = 0;
  }
  ++scope->canary_reports;
  scope->canary_error += MedianError(measured, epoch->factors);
  scope->usual_error += MedianError(measured, book_.InForce(key.first, key.second).factors);
  if (scope->canary_reports < options_.canary_reports) return;
  const double mean = scope->canary_error / scope->canary_reports;
  const double usual = scope->usual_error / scope->canary_reports;
  const std::string errors = StrCat(
      "over ", scope->canary_reports, " reports of its plans the mean error is ", PercentText(mean),
      " with it and ", PercentText(usual), " with the constants in force");
  if (mean > usual + kCanaryNoise) {
    book_.RollBack(number, errors).IgnoreError();
  } else {
    book_.Advance(number, EpochState::kActive, errors).IgnoreError();
  }
}

// Whether a plan that was made again is faster than before.
void Learner::JudgeMove(const StoredPlan& stored, const MeasuredGroups& groups,
                        std::string_view voter) {
  auto at = moves_.find(stored.key);
  if (at == moves_.end() || at->second.voter != voter) return;
  const Move& move = at->second;
  if (LaunchedKernels(stored.plan) == move.old_kernels) return;  // not made again yet
  const std::optional<PlanTime> time = PlanTimeOf(stored.plan, groups);
  if (!time.has_value() || time->samples < kLeastSamples) return;
  const bool slower = time->low_us > move.old_time.high_us;
  const std::string times = StrCat("measured ", UsText(move.old_time.us), " -> ", UsText(time->us));
  LearnedDecision decision{
      .epoch = move.epoch,
      .plan_key = stored.key,
      .model_name = stored.model_name,
      .text = StrCat(slower ? "slower than before, is made as before: " : "confirmed: ", times)};
  settled_[stored.key] = book_
                             .InForce(TenantOfKey(stored.full_key),
                                      {stored.plan.target, stored.plan.isa, stored.plan.threads})
                             .epoch;
  Bound(kMaxSettled, &settled_);
  if (slower && !move.unfused.empty()) {
    ++stay_fused_[stored.key];
    Bound(kMaxSettled, &stay_fused_);
  }
  if (slower) {
    book_.Want(stored.key,
               {.calibration = move.old_calibration, .unfuse = {}, .fuse_again = move.unfused});
  }
  const int64_t number = move.epoch;
  moves_.erase(at);
  book_.Log(std::move(decision));
  if (number == 0) return;
  auto& [faster_plans, slower_plans] = verdicts_[number];
  (slower ? slower_plans : faster_plans)++;
  if (slower_plans < 2 || slower_plans <= faster_plans) return;
  book_
      .RollBack(number, StrCat(slower_plans, " plans that changed with it were measured slower, ",
                               faster_plans, " faster"))
      .IgnoreError();
}

void Learner::Want(const StoredPlan& stored, const MeasuredGroups& groups, std::string_view voter,
                   Renewal renewal) {
  const std::optional<PlanTime> time = PlanTimeOf(stored.plan, groups);
  Move move{.old_kernels = LaunchedKernels(stored.plan),
            .old_calibration = stored.plan.calibration,
            .epoch = renewal.unfuse.empty() ? renewal.calibration.epoch : 0,
            .unfused = {},
            .old_time = time.value_or(PlanTime{.high_us = HUGE_VAL}),
            .voter = std::string(voter)};
  for (const auto& [node, reason] : renewal.unfuse) move.unfused.push_back(node);
  moves_.insert_or_assign(stored.key, std::move(move));
  Bound(kMaxMoves, &moves_);
  book_.Want(stored.key, std::move(renewal));
}

void Learner::AskForMove(const StoredPlan& stored, const MeasuredGroups& groups,
                         std::string_view voter, const PlanCalibration& in_force) {
  if (stored.plan.calibration.epoch == in_force.epoch || book_.IsWanted(stored.key)) return;
  if (stored.plan.fusion == FusionMode::kOpByOp) return;  // the baseline
  auto settled = settled_.find(stored.key);
  if (settled != settled_.end() && settled->second == in_force.epoch) return;
  const std::optional<PlanTime> time = PlanTimeOf(stored.plan, groups);
  // So that there is something to compare with afterwards.
  if (!time.has_value() || time->samples < kLeastSamples) return;
  settled_[stored.key] = in_force.epoch;
  Bound(kMaxSettled, &settled_);
  double noise = kLeastGain;
  for (const Epoch& epoch : book_.List(std::nullopt).epochs) {
    if (epoch.number == in_force.epoch) noise = std::max(noise, epoch.after.errors.median);
  }
  Want(stored, groups, voter,
       {.calibration = in_force, .unfuse = {}, .fuse_again = {}, .least_gain = noise});
}

void Learner::AskForUndo(const StoredPlan& stored, const MeasuredGroups& groups,
                         std::string_view voter, const KernelTimings& of, const Scope& scope) {
  if (stored.plan.fusion == FusionMode::kOpByOp || stay_fused_.contains(stored.key)) return;
  auto move = moves_.find(stored.key);
  const bool undoing = move != moves_.end() && !move->second.unfused.empty();
  if (book_.IsWanted(stored.key) || undoing) return;
  std::shared_ptr<const StoredPlan> parts;
  auto plans = scope.plans.find(StrCat(GraphOf(stored.full_key), "\n", voter));
  if (plans != scope.plans.end()) {
    for (const RecentPlan& plan : plans->second) {
      if (plan.fusion == FusionMode::kOpByOp) parts = plans_.PeekPlan(plan.key);
    }
  }
  const MeasuredGroups parts_groups = parts == nullptr ? MeasuredGroups() : GroupsOf(*parts, of);
  const std::vector<FusionToUndo> undo =
      FusionsToUndo(stored.plan, groups, parts == nullptr ? nullptr : &parts->plan, parts_groups);
  if (undo.empty()) return;
  Renewal renewal{.calibration = stored.plan.calibration};
  for (const FusionToUndo& fusion : undo) {
    for (int node : stored.plan.groups[static_cast<size_t>(fusion.group)].nodes) {
      renewal.unfuse.emplace(node, fusion.reason);
    }
  }
  book_.Log({.plan_key = stored.key,
             .model_name = stored.model_name,
             .text = StrCat("to be made again, ", undo.front().reason)});
  Want(stored, groups, voter, std::move(renewal));
}

std::vector<std::string> Learner::Train(const CancelToken& cancel) {
  std::vector<ScopeKey> keys;
  {
    MutexLock lock(&mutex_);
    for (const auto& [key, scope] : scopes_) keys.push_back(key);
  }
  std::vector<std::string> out;
  for (const ScopeKey& key : keys) {
    if (!cancel.Check().ok()) break;
    out.push_back(Fit(key, cancel));
  }
  if (keys.empty()) out.emplace_back("no latencies were reported since the server started");
  return out;
}

void Learner::Tick(const CancelToken& cancel) {
  std::vector<ScopeKey> due;
  const Nanoseconds now = clock_.Now();
  {
    MutexLock lock(&mutex_);
    for (const auto& [key, scope] : scopes_) {
      constexpr int64_t kLeastReports = 4;
      const int64_t grown = scope.reports - scope.fitted_reports;
      const bool enough = grown >= kLeastReports && grown * 5 >= scope.fitted_reports;
      if ((enough || scope.drifted) && now >= scope.next) due.push_back(key);
    }
  }
  for (const ScopeKey& key : due) {
    if (cancel.Check().ok()) Fit(key, cancel);
  }
  for (const Epoch& epoch : book_.UnderTrial()) {
    if (!cancel.Check().ok()) return;
    if (epoch.state() == EpochState::kShadow) {
      ShowShadow(epoch, cancel);
    } else {
      EndCanary(epoch);
    }
  }
  book_.Flush();
}

std::string Learner::Fit(const ScopeKey& key, const CancelToken& cancel) {
  const auto& [tenant, device] = key;
  const std::string what = StrCat(device.target, ", ", device.isa, ", ", device.threads, " threads",
                                  tenant.empty() ? "" : StrCat(", tenant ", Quote(tenant)), ": ");
  if (book_.UnderTrial(tenant, device).has_value()) return StrCat(what, "an epoch is under trial");
  std::vector<MeasuredPlans> plans;
  {
    MutexLock lock(&mutex_);
    Scope& scope = ScopeOf(key);
    scope.fitted_reports = scope.reports;
    scope.drifted = false;
    scope.next = clock_.Now() + scope.pause;
    scope.pause = std::min(2 * scope.pause, options_.longest_pause);
    for (const auto& [graph, recent] : scope.plans) {
      if (recent.size() < 2) continue;
      plans.emplace_back();
      for (const RecentPlan& plan : recent) plans.back().push_back(plan.measured);
    }
  }
  auto observations =
      ReadObservations(timings_.keys(), timings_.read, TimingsForScope(tenant), cancel);
  if (!observations.ok()) return StrCat(what, Message(observations.status()));
  auto of = observations->find(device);
  if (of == observations->end()) return StrCat(what, "no times are stored");
  const PlanCalibration in_force = book_.InForce(tenant, device);
  const absl::StatusOr<EpochTrial> trial =
      TryEpoch(of->second.observations, plans, in_force.factors, cancel);
  if (!trial.ok()) return StrCat(what, Message(trial.status()));
  if (!trial->differs) {
    return StrCat(what,
                  trial->kernels < kLeastKernels ? trial->reason : "the constants in force fit");
  }
  Epoch epoch{.tenant = tenant,
              .device = device,
              .factors = trial->factors,
              .kernels = trial->kernels,
              .timings = trial->timings,
              .before = trial->before,
              .after = trial->after};
  const EpochState state = trial->better ? EpochState::kShadow : EpochState::kRejected;
  const int64_t number = book_.Add(std::move(epoch), state, trial->reason);
  MutexLock lock(&mutex_);
  if (trial->better) ScopeOf(key).pause = options_.first_pause;
  return StrCat(what, "epoch ", number, " is ",
                state == EpochState::kShadow ? "in the shadow" : "rejected", ": ", trial->reason);
}

// Says what the epoch would change, then makes it a canary.
void Learner::ShowShadow(const Epoch& epoch, const CancelToken& cancel) {
  std::vector<Digest> keys;
  {
    MutexLock lock(&mutex_);
    for (const auto& [graph, recent] : ScopeOf({epoch.tenant, epoch.device}).plans) {
      for (const RecentPlan& plan : recent) {
        if (plan.fusion == FusionMode::kFused && keys.size() < kMaxPreviews) {
          keys.push_back(plan.key);
        }
      }
    }
  }
  int changes = 0;
  int seen = 0;
  for (const Digest& key : keys) {
    const std::shared_ptr<const StoredPlan> stored = plans_.PeekPlan(key);
    if (stored == nullptr) continue;
    const absl::StatusOr<EpochPlan> plan =
        callbacks_.preview(*stored, {epoch.number, epoch.factors}, cancel);
    if (!cancel.Check().ok()) return;
    if (!plan.ok()) continue;
    ++seen;
    changes += plan->verdict == "would change" ? 1 : 0;
    book_.NotePlan(epoch.number, *plan);
  }
  {
    MutexLock lock(&mutex_);
    Scope& scope = ScopeOf({epoch.tenant, epoch.device});
    scope.canary_epoch = epoch.number;
    scope.canary_since = clock_.Now();
    scope.canary_reports = 0;
    scope.canary_error = scope.usual_error = 0;
  }
  book_
      .Advance(epoch.number, EpochState::kCanary,
               StrCat("it would change ", changes, " of ", seen, " plans that were looked at"))
      .IgnoreError();
}

void Learner::EndCanary(const Epoch& epoch) {
  {
    MutexLock lock(&mutex_);
    Scope& scope = ScopeOf({epoch.tenant, epoch.device});
    if (scope.canary_epoch != epoch.number) {  // since before a restart
      scope.canary_epoch = epoch.number;
      scope.canary_since = clock_.Now();
      scope.canary_reports = 0;
      scope.canary_error = scope.usual_error = 0;
    }
    if (clock_.Now() - scope.canary_since < options_.canary_wait) return;
  }
  book_
      .Advance(epoch.number, EpochState::kActive,
               StrCat("no report about its plans contradicts it within ",
                      options_.canary_wait / std::chrono::seconds(1), " s"))
      .IgnoreError();
}

}  // namespace fusion
