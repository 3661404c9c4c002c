#include "core/learn/learner.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/key_field.h"
#include "core/base/statistics/quantile.h"
#include "core/benefit/terms.h"
#include "core/bundle/report.h"
#include "core/learn/op_by_op_times.h"
#include "core/learn/texts.h"

namespace fusion {
namespace {

// What is remembered at most; all of it can be learned again.
constexpr size_t kMaxScopes = 64;
constexpr size_t kMaxScopesOfTenant = 16;
constexpr size_t kMaxVoters = 64;  // of a scope
constexpr size_t kMaxPlansOfGraph = 8;
constexpr int64_t kMaxPlanBytes = int64_t{1} << 20;  // of alternatives of a scope
constexpr size_t kMaxSettled = 4096;
constexpr Nanoseconds kRest = std::chrono::hours(1);
constexpr int kMaxPreviews = 16;
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
    const double expected = ExpectedUs(t.terms, t.form, factors);
    if (expected > 0) out.push_back(std::log(MedianUs(t) / expected));
  }
  return out;
}

double MedianError(const std::vector<KernelTimings>& measured, const CostFactors& factors) {
  std::vector<double> errors = Distances(measured, factors);
  for (double& error : errors) error = std::abs(error);
  return errors.empty() ? 0 : Quantile(std::move(errors), 0.5);
}

// What plans that compute the same in the same way have in common: all but what chooses between
// fused plans.
std::string AlternativesOf(std::string_view full_key) {
  static const std::set<std::string_view> kChoice = {
      "fusion", "rules", "low_latency", "frontier", "opt_level", "registered", "lock"};
  FieldHasher h;
  while (const std::optional<FramedField> field = NextFramedField(&full_key)) {
    if (!kChoice.contains(field->label)) h.Add(field->label, field->value);
  }
  return h.Finish().ToHex();
}

bool IsLocked(std::string_view full_key) {
  while (const std::optional<FramedField> field = NextFramedField(&full_key)) {
    if (field->label == "lock") return true;
  }
  return false;
}

template <typename Key, typename Value>
void MakeRoom(size_t most, std::map<Key, Value>* map) {
  // Before an entry is added. Any one goes: what is dropped is learned again.
  while (map->size() >= most) map->erase(map->begin());
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
      clock_(clock) {
  book_.SetListener([this](const Digest& plan, std::string_view tenant,
                           const RenewalOutcome& outcome) { OnRenewed(plan, tenant, outcome); });
}

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
  if (known == scopes_.end()) {
    // Of the tenant who has most, never of others: what was used longest ago.
    std::map<std::string_view, size_t> scopes_of;
    for (const auto& [other, scope] : scopes_) ++scopes_of[other.first];
    std::string tenant = key.first;
    if (scopes_of[tenant] < kMaxScopesOfTenant && scopes_.size() >= kMaxScopes) {
      size_t most = 0;
      for (const auto& [name, count] : scopes_of) {
        if (name.empty() || count <= most) continue;
        most = count;
        tenant = name;
      }
    }
    if (scopes_of[key.first] >= kMaxScopesOfTenant || scopes_.size() >= kMaxScopes) {
      auto victim = scopes_.end();
      for (auto it = scopes_.begin(); it != scopes_.end(); ++it) {
        if (it->first.first != tenant) continue;
        if (victim == scopes_.end() || it->second.used < victim->second.used) victim = it;
      }
      if (victim != scopes_.end()) scopes_.erase(victim);
    }
    known = scopes_.emplace(key, Scope()).first;
    known->second.pause = options_.first_pause;
  }
  known->second.used = ++uses_;
  return known->second;
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

Learner::Told Learner::Read(const StoredPlan& stored, const std::vector<KernelTimings>& measured) {
  const KernelTimings& of = measured.front();
  Told told{.stored = stored, .measured = measured, .voter = VoterName(of)};
  told.groups = GroupsOf(stored, of);
  for (const Digest& key : OpByOpKeysOf(stored.full_key)) {
    told.parts = plans_.PeekPlan(key);
    if (told.parts == nullptr) continue;
    told.parts_groups = GroupsOf(*told.parts, of);
    break;
  }
  return told;
}

void Learner::OnReport(const StoredPlan& stored, const std::vector<KernelTimings>& measured) {
  if (measured.empty()) return;
  const TimedDevice& device = measured.front().device;
  const std::vector<std::string> scopes = ScopesOf(stored, measured.front());
  if (scopes.empty()) return;
  const Told told = Read(stored, measured);
  const std::string_view owner = TenantOfKey(stored.full_key);
  MutexLock lock(&mutex_);
  for (const std::string& tenant : scopes) {
    const ScopeKey key(tenant, device);
    Scope& scope = ScopeOf(key);
    const PlanCalibration in_force = book_.InForce(tenant, device);
    ++scope.reports;
    NoteDrift(told, in_force, key, &scope);
    NotePlan(told, &scope);
    JudgeCanary(told, key, &scope);
    if (tenant != owner) continue;
    // The rest changes the plan.
    JudgeMove(told, key, &scope);
    if (stored.plan.fusion == FusionMode::kOpByOp) continue;  // the baseline
    if (stored.plan.search.level > 0 || IsLocked(stored.full_key)) continue;
    if (callbacks_.stays(stored.key) || book_.IsWanted(stored.key)) continue;
    const auto rest = scope.rests.find(stored.key);
    if (rest != scope.rests.end() && clock_.Now() < rest->second) continue;
    AskForUndo(told, key);
    AskForMove(told, book_.InForce(tenant, device), key,
               &scope);  // a canary may have become active
  }
}

// A change that came to nothing is forgotten; the plan rests.
void Learner::OnRenewed(const Digest& plan, std::string_view tenant,
                        const RenewalOutcome& outcome) {
  if (outcome.changed) return;
  MutexLock lock(&mutex_);
  const std::optional<PlanChange> change = book_.ChangeOf(plan);
  if (!change.has_value() || change->tenant != tenant) return;
  book_.DropChange(plan);
  Scope& scope = ScopeOf({change->tenant, change->device});
  MakeRoom(kMaxSettled, &scope.rests);
  scope.rests[plan] = clock_.Now() + kRest;
}

void Learner::OnTiming(const KernelTimings& measured) {
  MutexLock lock(&mutex_);
  ++ScopeOf({measured.tenant, measured.device}).reports;
}

void Learner::NoteDrift(const Told& told, const PlanCalibration& in_force, const ScopeKey& key,
                        Scope* scope) {
  std::vector<double> distances = Distances(told.measured, in_force.factors);
  if (distances.empty()) return;
  if (std::exchange(scope->drift_epoch, in_force.epoch) != in_force.epoch) {
    scope->drift.clear();
    scope->distances = 0;
  }
  if (!scope->drift.contains(told.voter)) MakeRoom(kMaxVoters, &scope->drift);
  PageHinkley& detector = scope->drift.try_emplace(told.voter, DriftDetector()).first->second;
  const double distance = Quantile(std::move(distances), 0.5);
  // Starts as the mean of the first ones.
  const double weight = 1.0 / static_cast<double>(std::min<int64_t>(++scope->distances, 32));
  scope->distance += weight * (distance - scope->distance);
  if (!detector.Add(distance)) return;
  scope->drifted = true;
  scope->pause = options_.first_pause;
  scope->next = std::min(scope->next, clock_.Now() + options_.first_pause);
  if (!key.first.empty()) return;  // the operator's are the shared plans
  ++drifts_;
  logger_.Warning("drift", {{"target", key.second.target},
                            {"threads", key.second.threads},
                            {"machine", told.measured.front().machine}});
}

void Learner::NotePlan(const Told& told, Scope* scope) {
  const Plan& plan = told.stored.plan;
  const std::optional<PlanTime> time = PlanTimeOf(plan, told.groups);
  if (!time.has_value() || time->us <= 0) return;
  std::optional<MeasuredPlan> launches = LaunchesOf(plan);
  if (!launches.has_value()) return;
  launches->measured_us = time->us;
  RecentPlan recent{.key = told.stored.key, .measured = *std::move(launches)};
  const auto bytes_of = [](const RecentPlan& of) {
    constexpr int64_t kLaunchBytes = sizeof(MeasuredPlan::Launch) + 80;
    return 256 + kLaunchBytes * static_cast<int64_t>(of.measured.launches.size());
  };
  const std::string set = StrCat(AlternativesOf(told.stored.full_key), "\n", told.voter);
  std::vector<RecentPlan>& plans = scope->plans[set];
  std::erase_if(plans, [&](const RecentPlan& p) {
    const bool again = p.key == told.stored.key;
    if (again) scope->plan_bytes -= bytes_of(p);
    return again;
  });
  if (plans.size() >= kMaxPlansOfGraph) {
    scope->plan_bytes -= bytes_of(plans.front());
    plans.erase(plans.begin());
  }
  scope->plan_bytes += bytes_of(recent);
  plans.push_back(std::move(recent));
  while (scope->plan_bytes > kMaxPlanBytes && scope->plans.size() > 1) {
    auto victim = scope->plans.begin();
    if (victim->first == set) ++victim;
    for (const RecentPlan& p : victim->second) scope->plan_bytes -= bytes_of(p);
    scope->plans.erase(victim);
  }
}

void Learner::JudgeCanary(const Told& told, const ScopeKey& key, Scope* scope) {
  const PlanCalibration& made_with = told.stored.plan.calibration;
  if (made_with.epoch == 0) return;
  const std::optional<Epoch> epoch = book_.UnderTrial(key.first, key.second);
  if (!epoch.has_value() || epoch->state() != EpochState::kCanary) return;
  if (made_with != PlanCalibration{epoch->number, epoch->factors}) return;
  if (scope->canary_epoch != epoch->number) {  // since before a restart
    scope->canary_epoch = epoch->number;
    scope->canary_since = clock_.Now();
    scope->canary.clear();
  }
  if (!scope->canary.contains(told.voter)) MakeRoom(kMaxVoters, &scope->canary);
  CanaryVotes& votes = scope->canary[told.voter];
  ++votes.reports;
  votes.error += MedianError(told.measured, epoch->factors);
  votes.usual += MedianError(told.measured, book_.InForce(key.first, key.second).factors);
  int reports = 0;
  for (const auto& [voter, of] : scope->canary) reports += of.reports;
  if (reports >= options_.canary_reports) DecideCanary(*epoch, scope, /*late=*/false);
}

// Each machine has one vote.
void Learner::DecideCanary(const Epoch& epoch, Scope* scope, bool late) {
  double mean = 0;
  double usual = 0;
  int reports = 0;
  for (const auto& [voter, votes] : scope->canary) {
    mean += votes.error / votes.reports / static_cast<double>(scope->canary.size());
    usual += votes.usual / votes.reports / static_cast<double>(scope->canary.size());
    reports += votes.reports;
  }
  const std::string errors =
      reports == 0
          ? StrCat("no report about its plans contradicts it within ",
                   options_.canary_wait / std::chrono::seconds(1), " s")
          : StrCat("over ", reports, " reports about its plans",
                   late ? ", all that came in time," : "", " the mean error is ", PercentText(mean),
                   " with it and ", PercentText(usual), " with the constants in force");
  const bool contradicted = mean > usual + kCanaryNoise;
  book_
      .Advance(epoch.number, EpochState::kCanary,
               contradicted ? EpochState::kRolledBack : EpochState::kActive, errors)
      .IgnoreError();
}

// Whether a plan that was made again is faster than before.
void Learner::JudgeMove(const Told& told, const ScopeKey& key, Scope* scope) {
  const StoredPlan& stored = told.stored;
  const std::optional<PlanChange> change = book_.ChangeOf(stored.key);
  if (!change.has_value()) return;
  if (LaunchedKernels(stored.plan) == change->old_kernels) {
    if (change->undo) book_.DropChange(stored.key);  // it is as it was
    return;                                          // or not made again yet
  }
  const auto make_as_before = [&] {
    book_.Want(
        stored.key, key.first,
        {.calibration = change->old_calibration, .unfuse = {}, .fuse_again = change->unfused});
  };
  if (change->undo) {
    if (!book_.IsWanted(stored.key)) make_as_before();  // the server was started again
    return;
  }
  if (change->voter != told.voter) return;
  if (change->epoch > 0 && stored.plan.calibration.epoch != change->epoch) {
    book_.DropChange(stored.key);  // something else changed it
    return;
  }
  const std::optional<PlanTime> time = PlanTimeOf(stored.plan, told.groups);
  if (!time.has_value() || time->samples < kLeastSamples) return;
  const bool slower = time->low_us > change->old_high_us;
  if (!slower) book_.DropChange(stored.key);
  book_.Log({.epoch = change->epoch,
             .tenant = key.first,
             .plan_key = stored.key,
             .model_name = stored.model_name,
             .text = StrCat(slower ? "slower than before, is made as before: " : "confirmed: ",
                            "measured ", UsText(change->old_us), " -> ", UsText(time->us))});
  if (slower) {
    book_.Keep(stored.key, change->epoch);
    PlanChange back = *change;
    back.undo = true;
    book_.NoteChange(std::move(back));
    make_as_before();
  }
  // What a tenant's plans say of shared constants is for that tenant alone.
  const std::optional<Epoch> epoch = book_.Get(change->epoch);
  if (!epoch.has_value() || epoch->tenant != key.first) return;
  MakeRoom(kMaxVoters, &scope->verdicts);
  auto& [faster_plans, slower_plans] = scope->verdicts[change->epoch];
  (slower ? slower_plans : faster_plans)++;
  if (slower_plans < 2 || slower_plans <= faster_plans) return;
  book_
      .RollBack(change->epoch,
                StrCat(slower_plans, " plans that changed with it were measured slower, ",
                       faster_plans, " faster"))
      .IgnoreError();
  scope->verdicts.erase(change->epoch);
}

bool Learner::Want(const Told& told, const ScopeKey& key, Renewal renewal) {
  const StoredPlan& stored = told.stored;
  const PlanTime before =
      PlanTimeOf(stored.plan, told.groups).value_or(PlanTime{.low_us = 0, .high_us = HUGE_VAL});
  PlanChange change{.plan_key = stored.key,
                    .tenant = key.first,
                    .device = key.second,
                    .voter = told.voter,
                    .old_kernels = LaunchedKernels(stored.plan),
                    .old_calibration = stored.plan.calibration,
                    .epoch = renewal.unfuse.empty() ? renewal.calibration.epoch : 0,
                    .unfused = {},
                    .old_us = before.us,
                    .old_low_us = before.low_us,
                    .old_high_us = before.high_us};
  for (const auto& [node, reason] : renewal.unfuse) change.unfused.push_back(node);
  // First: the renewal may be done at once.
  book_.NoteChange(std::move(change));
  if (book_.Want(stored.key, key.first, std::move(renewal))) return true;
  book_.DropChange(stored.key);
  return false;
}

void Learner::AskForMove(const Told& told, const PlanCalibration& in_force, const ScopeKey& key,
                         Scope* scope) {
  const StoredPlan& stored = told.stored;
  const PlanCalibration& made_with = stored.plan.calibration;
  if (made_with == in_force || book_.IsWanted(stored.key)) return;
  if (book_.IsKept(stored.key, in_force.epoch)) return;
  // A canary is judged by its plans first. One of the shared plans may have made a tenant's plan.
  for (const std::string& tenant : {key.first, std::string()}) {
    const std::optional<Epoch> trial = book_.UnderTrial(tenant, key.second);
    if (trial.has_value() && trial->number == made_with.epoch) return;
  }
  auto settled = scope->settled.find(stored.key);
  if (settled != scope->settled.end() && settled->second == in_force.epoch) return;
  const std::optional<PlanTime> time = PlanTimeOf(stored.plan, told.groups);
  // So that there is something to compare with afterwards.
  if (!time.has_value() || time->samples < kLeastSamples) return;
  const std::optional<Epoch> epoch = book_.Get(in_force.epoch);
  const double noise = std::max(kLeastGain, epoch ? epoch->after.errors.median : 0);
  if (!Want(told, key,
            {.calibration = in_force, .unfuse = {}, .fuse_again = {}, .least_gain = noise})) {
    return;
  }
  MakeRoom(kMaxSettled, &scope->settled);
  scope->settled[stored.key] = in_force.epoch;
}

void Learner::AskForUndo(const Told& told, const ScopeKey& key) {
  const StoredPlan& stored = told.stored;
  if (told.parts == nullptr || book_.IsKept(stored.key, 0)) return;
  const std::vector<FusionToUndo> undo =
      FusionsToUndo(stored.plan, told.groups, told.parts->plan, told.parts_groups);
  if (undo.empty()) return;
  Renewal renewal{.calibration = stored.plan.calibration};
  for (const FusionToUndo& fusion : undo) {
    const std::vector<int>& nodes = stored.plan.groups[static_cast<size_t>(fusion.group)].nodes;
    if (renewal.unfuse.size() + nodes.size() > PlanChange::kMaxUnfused) continue;
    for (int node : nodes) renewal.unfuse.emplace(node, fusion.reason);
  }
  if (renewal.unfuse.empty()) return;
  if (!Want(told, key, std::move(renewal))) return;
  book_.Log({.tenant = key.first,
             .plan_key = stored.key,
             .model_name = stored.model_name,
             .text = StrCat("to be made again, ", undo.front().reason)});
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
  bool drifted = false;
  {
    MutexLock lock(&mutex_);
    Scope& scope = ScopeOf(key);
    scope.fitted_reports = scope.reports;
    drifted = std::exchange(scope.drifted, false);
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
  const std::optional<Epoch> back = book_.LastRolledBack(tenant, device);
  constexpr double kAsBefore = 0.1;
  if (trial->better && !drifted && back.has_value() && trial->timings < 2 * back->timings &&
      !FactorsDiffer(trial->factors, back->factors, kAsBefore)) {
    return StrCat(what, "as epoch ", back->number, ", which was rolled back");
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
  if (number == 0) return StrCat(what, "there are too many epochs in use");
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
        keys.push_back(plan.key);
      }
    }
  }
  int changes = 0;
  int seen = 0;
  for (const Digest& key : keys) {
    const std::shared_ptr<const StoredPlan> stored = plans_.PeekPlan(key);
    if (stored == nullptr || stored->plan.fusion == FusionMode::kOpByOp) continue;
    if (seen == kMaxPreviews) break;
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
    scope.canary.clear();
  }
  book_
      .Advance(epoch.number, EpochState::kShadow, EpochState::kCanary,
               StrCat("it would change ", changes, " of ", seen, " plans that were looked at"))
      .IgnoreError();
}

void Learner::EndCanary(const Epoch& epoch) {
  MutexLock lock(&mutex_);
  Scope& scope = ScopeOf({epoch.tenant, epoch.device});
  if (scope.canary_epoch != epoch.number) {  // since before a restart
    scope.canary_epoch = epoch.number;
    scope.canary_since = clock_.Now();
    scope.canary.clear();
  }
  if (clock_.Now() - scope.canary_since >= options_.canary_wait) {
    DecideCanary(epoch, &scope, /*late=*/true);
  }
}

}  // namespace fusion
