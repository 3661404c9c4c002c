#include "core/learn/epoch_book.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "core/base/files/file.h"
#include "core/base/unix_time.h"
#include "core/learn/texts.h"
#include "core/wire/epochs.h"

namespace fusion {
namespace {

constexpr int64_t kMaxFileBytes = int64_t{64} << 20;

std::string Cut(std::string_view text) {
  return std::string(text.substr(0, EpochBook::kMaxTextBytes));
}

bool IsUnderTrial(const Epoch& epoch) {
  return epoch.state() == EpochState::kShadow || epoch.state() == EpochState::kCanary;
}

bool IsInUse(const Epoch& epoch) {
  return IsUnderTrial(epoch) || epoch.state() == EpochState::kActive;
}

// Drops epochs until there is room for `epoch`, of its own tenant only. False: all are in use.
bool MakeRoomFor(const Epoch& epoch, std::vector<Epoch>* all) {
  std::vector<Epoch>& epochs = *all;
  auto of_tenant = [&](const Epoch& other) { return other.tenant == epoch.tenant; };
  auto is_rejected = [&](const Epoch& other) {
    return of_tenant(other) && other.state() == EpochState::kRejected;
  };
  auto here = [&](const Epoch& other) {
    return is_rejected(other) && other.device == epoch.device;
  };
  auto drop = [&](auto which) {
    auto victim = std::find_if(epochs.begin(), epochs.end(), which);
    if (victim == epochs.end()) return false;
    epochs.erase(victim);
    return true;
  };
  while (std::count_if(epochs.begin(), epochs.end(), here) >=
         static_cast<std::ptrdiff_t>(EpochBook::kMaxRejected)) {
    drop(here);
  }
  auto full = [&] {
    return epochs.size() >= EpochBook::kMaxEpochs ||
           std::count_if(epochs.begin(), epochs.end(), of_tenant) >=
               static_cast<std::ptrdiff_t>(EpochBook::kMaxEpochsOfTenant);
  };
  while (full()) {
    if (drop(is_rejected)) continue;
    if (drop([&](const Epoch& other) { return of_tenant(other) && !IsInUse(other); })) continue;
    return false;
  }
  return true;
}

PlanCalibration CalibrationOf(const Epoch* epoch) {
  return epoch == nullptr ? PlanCalibration() : PlanCalibration{epoch->number, epoch->factors};
}

}  // namespace

absl::StatusOr<std::unique_ptr<EpochBook>> EpochBook::Open(EpochBookOptions options, Logger& logger,
                                                           const Clock& clock) {
  std::unique_ptr<EpochBook> book(new EpochBook(std::move(options), logger, clock));
  RETURN_IF_ERROR(book->Read());
  return book;
}

absl::Status EpochBook::Read() {
  namespace fs = std::filesystem;
  std::error_code error;
  if (options_.path.empty() || !fs::exists(options_.path, error)) return absl::OkStatus();
  absl::StatusOr<std::string> bytes = ReadFile(options_.path, kMaxFileBytes);
  if (absl::IsUnavailable(bytes.status())) return bytes.status();
  absl::StatusOr<LearnedState> state =
      bytes.ok() ? LearnedFromBytes(*bytes) : absl::StatusOr<LearnedState>(bytes.status());
  if (!state.ok()) {
    const std::string aside = StrCat(options_.path, ".damaged");
    fs::rename(options_.path, aside, error);
    logger_.Error("epochs_damaged",
                  {{"reason", Message(state.status())}, {"moved_to", error ? "" : aside}});
    return absl::OkStatus();
  }
  MutexLock lock(&mutex_);
  epochs_.assign(state->list.epochs.rbegin(), state->list.epochs.rend());
  decisions_.assign(state->list.decisions.rbegin(), state->list.decisions.rend());
  for (const Epoch& epoch : epochs_) next_ = std::max(next_, epoch.number + 1);
  kept_.assign(state->kept.begin(), state->kept.end());
  kept_set_.insert(kept_.begin(), kept_.end());
  for (PlanChange& change : state->changes) {
    const Digest plan = change.plan_key;
    changes_.insert_or_assign(plan, std::move(change));
  }
  return absl::OkStatus();
}

// A failure loses at most what was learned; it can be learned again.
void EpochBook::Flush() {
  MutexLock writing(&writing_);
  std::string bytes;
  {
    MutexLock lock(&mutex_);
    if (!std::exchange(dirty_, false) || options_.path.empty()) return;
    LearnedState state;
    state.list.epochs.assign(epochs_.rbegin(), epochs_.rend());
    state.list.decisions.assign(decisions_.rbegin(), decisions_.rend());
    state.kept.assign(kept_.begin(), kept_.end());
    for (const auto& [plan, change] : changes_) state.changes.push_back(change);
    bytes = LearnedToBytes(state);
  }
  const absl::Status saved = ReplaceFile(options_.path, bytes);
  if (saved.ok()) return;
  logger_.Warning("epochs_not_saved", {{"reason", Message(saved)}});
  MutexLock lock(&mutex_);
  dirty_ = true;
}

Epoch* EpochBook::Find(int64_t number) {
  auto at = std::find_if(epochs_.begin(), epochs_.end(),
                         [&](const Epoch& epoch) { return epoch.number == number; });
  return at == epochs_.end() ? nullptr : &*at;
}

const Epoch* EpochBook::InState(std::string_view tenant, const TimedDevice& device,
                                EpochState state) const {
  auto at = std::find_if(epochs_.rbegin(), epochs_.rend(), [&](const Epoch& epoch) {
    return epoch.state() == state && epoch.tenant == tenant && epoch.device == device;
  });
  return at == epochs_.rend() ? nullptr : &*at;
}

const Epoch* EpochBook::ActiveFor(std::string_view tenant, const TimedDevice& device) const {
  const Epoch* own = InState(tenant, device, EpochState::kActive);
  return own != nullptr || tenant.empty() ? own : InState("", device, EpochState::kActive);
}

PlanCalibration EpochBook::ForNewPlan(std::string_view tenant, const TimedDevice& device,
                                      const Digest& plan_key) const {
  MutexLock lock(&mutex_);
  if (epochs_.empty()) return {};
  const Epoch* canary = InState(tenant, device, EpochState::kCanary);
  if (canary == nullptr && InState(tenant, device, EpochState::kActive) == nullptr) {
    canary = InState("", device, EpochState::kCanary);
  }
  // By key, so that a plan that is made twice gets the same constants.
  const int lot = (plan_key.bytes[30] * 256 + plan_key.bytes[31]) % 100;
  if (canary != nullptr && lot < options_.canary_percent) return CalibrationOf(canary);
  return CalibrationOf(ActiveFor(tenant, device));
}

PlanCalibration EpochBook::InForce(std::string_view tenant, const TimedDevice& device) const {
  MutexLock lock(&mutex_);
  return CalibrationOf(ActiveFor(tenant, device));
}

std::optional<Epoch> EpochBook::UnderTrial(std::string_view tenant,
                                           const TimedDevice& device) const {
  MutexLock lock(&mutex_);
  for (const EpochState state : {EpochState::kCanary, EpochState::kShadow}) {
    const Epoch* epoch = InState(tenant, device, state);
    if (epoch != nullptr) return *epoch;
  }
  return std::nullopt;
}

std::vector<Epoch> EpochBook::UnderTrial() const {
  std::vector<Epoch> out;
  MutexLock lock(&mutex_);
  std::copy_if(epochs_.begin(), epochs_.end(), std::back_inserter(out), IsUnderTrial);
  return out;
}

std::optional<Epoch> EpochBook::LastRolledBack(std::string_view tenant,
                                               const TimedDevice& device) const {
  MutexLock lock(&mutex_);
  const Epoch* epoch = InState(tenant, device, EpochState::kRolledBack);
  return epoch == nullptr ? std::nullopt : std::optional<Epoch>(*epoch);
}

std::optional<Epoch> EpochBook::Get(int64_t number) const {
  MutexLock lock(&mutex_);
  for (const Epoch& epoch : epochs_) {
    if (epoch.number == number) return epoch;
  }
  return std::nullopt;
}

void EpochBook::SetState(Epoch* epoch, EpochState state, std::string_view reason) {
  epoch->events.push_back({UnixMilliseconds(clock_), state, Cut(reason)});
  if (epoch->events.size() > Epoch::kMaxEvents) epoch->events.erase(epoch->events.begin());
  logger_.Info("epoch", {{"number", epoch->number},
                         {"state", EpochStateName(state)},
                         {"target", epoch->device.target},
                         {"threads", epoch->device.threads},
                         {"tenant", epoch->tenant},
                         {"reason", reason}});
}

int64_t EpochBook::Add(Epoch epoch, EpochState state, std::string_view reason) {
  MutexLock lock(&mutex_);
  if (!MakeRoomFor(epoch, &epochs_)) return 0;
  epoch.number = next_++;
  epoch.events.clear();
  SetState(&epoch, state, reason);
  const int64_t number = epoch.number;
  epochs_.push_back(std::move(epoch));
  dirty_ = true;
  return number;
}

absl::Status EpochBook::Advance(int64_t number, EpochState from, EpochState to,
                                std::string_view reason) {
  MutexLock lock(&mutex_);
  Epoch* epoch = Find(number);
  if (epoch == nullptr) return NotFound("no epoch ", number);
  if (epoch->state() != from) {
    return FailedPrecondition("epoch ", number, " is ", EpochStateName(epoch->state()),
                              "; expected ", EpochStateName(from));
  }
  if (to == EpochState::kActive) {
    for (Epoch& other : epochs_) {
      if (&other == epoch || other.state() != EpochState::kActive ||
          other.tenant != epoch->tenant || other.device != epoch->device) {
        continue;
      }
      SetState(&other, EpochState::kRetired, StrCat("epoch ", number, " is active"));
    }
  }
  SetState(epoch, to, reason);
  dirty_ = true;
  return absl::OkStatus();
}

absl::Status EpochBook::RollBack(int64_t number, std::string_view reason) {
  MutexLock lock(&mutex_);
  Epoch* epoch = Find(number);
  if (epoch == nullptr) return NotFound("no epoch ", number, " is known");
  if (!IsInUse(*epoch)) {
    return FailedPrecondition("epoch ", number, " is ", EpochStateName(epoch->state()),
                              "; expected one in use: shadow, canary or active");
  }
  const bool active = epoch->state() == EpochState::kActive;
  SetState(epoch, EpochState::kRolledBack, reason);
  if (active) {
    auto before = std::find_if(epochs_.rbegin(), epochs_.rend(), [&](const Epoch& other) {
      return other.state() == EpochState::kRetired && other.number < number &&
             other.tenant == epoch->tenant && other.device == epoch->device;
    });
    if (before != epochs_.rend()) {
      SetState(&*before, EpochState::kActive, StrCat("epoch ", number, " was rolled back"));
    }
  }
  dirty_ = true;
  return absl::OkStatus();
}

void EpochBook::NotePlan(int64_t number, EpochPlan plan) {
  MutexLock lock(&mutex_);
  Epoch* epoch = Find(number);
  if (epoch == nullptr) return;
  plan.verdict = Cut(plan.verdict);
  std::erase_if(epoch->plans, [&](const EpochPlan& p) { return p.plan_key == plan.plan_key; });
  epoch->plans.push_back(std::move(plan));
  if (epoch->plans.size() > Epoch::kMaxPlans) epoch->plans.erase(epoch->plans.begin());
  dirty_ = true;
}

bool EpochBook::HasRoom(std::string_view tenant) const {
  size_t of_tenant = 0;
  for (const auto& [plan, wanted] : renewals_) of_tenant += wanted.tenant == tenant ? 1 : 0;
  return renewals_.size() < kMaxRenewals && of_tenant < kMaxRenewalsOfTenant;
}

bool EpochBook::Want(const Digest& plan, std::string_view tenant, Renewal renewal) {
  const Nanoseconds now = clock_.Now();
  MutexLock lock(&mutex_);
  bool room = renewals_.contains(plan) || HasRoom(tenant);
  if (!room) {
    std::erase_if(renewals_,
                  [&](const auto& entry) { return now - entry.second.since > kRenewalWait; });
    room = HasRoom(tenant);
  }
  if (room) renewals_.insert_or_assign(plan, Wanted{std::move(renewal), std::string(tenant), now});
  wanted_ = static_cast<int64_t>(renewals_.size());
  return room;
}

bool EpochBook::IsWanted(const Digest& plan) const {
  if (wanted_.load(std::memory_order_relaxed) == 0) return false;
  MutexLock lock(&mutex_);
  const auto at = renewals_.find(plan);
  return at != renewals_.end() && clock_.Now() - at->second.since <= kRenewalWait;
}

std::optional<Renewal> EpochBook::Take(const Digest& plan) {
  if (wanted_.load(std::memory_order_relaxed) == 0) return std::nullopt;
  MutexLock lock(&mutex_);
  auto at = renewals_.find(plan);
  if (at == renewals_.end()) return std::nullopt;
  const bool late = clock_.Now() - at->second.since > kRenewalWait;
  Renewal out = std::move(at->second.renewal);
  renewals_.erase(at);
  wanted_ = static_cast<int64_t>(renewals_.size());
  return late ? std::nullopt : std::optional<Renewal>(std::move(out));
}

void EpochBook::OnRenewed(const Digest& plan, std::string_view model_name, std::string_view tenant,
                          const Renewal& renewal, const RenewalOutcome& outcome) {
  const std::string estimates =
      StrCat("estimated ", UsText(outcome.old_us), " -> ", UsText(outcome.new_us));
  LearnedDecision decision{
      .epoch = renewal.calibration.epoch, .plan_key = plan, .model_name = std::string(model_name)};
  if (outcome.changed) {
    decision.text = StrCat("made again, ", estimates);
    if (!renewal.unfuse.empty()) {
      StrAppend(&decision.text, StrCat("; ", renewal.unfuse.begin()->second));
    }
  } else {
    decision.text = StrCat("stays as it is: ", outcome.reason);
  }
  if (renewal.calibration.epoch > 0) {
    NotePlan(renewal.calibration.epoch,
             {.plan_key = plan,
              .model_name = std::string(model_name),
              .old_us = outcome.old_us,
              .new_us = outcome.new_us,
              .verdict = outcome.changed ? "changed" : StrCat("stays: ", outcome.reason)});
  }
  {
    MutexLock lock(&mutex_);
    ++(outcome.changed ? changed_ : unchanged_);
  }
  Log(std::move(decision));
  if (listener_) listener_(plan, tenant, outcome);
}

void EpochBook::Log(LearnedDecision decision) {
  MutexLock lock(&mutex_);
  decision.unix_ms = UnixMilliseconds(clock_);
  decision.text = Cut(decision.text);
  logger_.Info("learned", {{"plan", decision.plan_key.ToHex()},
                           {"epoch", decision.epoch},
                           {"decision", decision.text}});
  decisions_.push_back(std::move(decision));
  if (decisions_.size() > kMaxDecisions) decisions_.pop_front();
  dirty_ = true;
}

void EpochBook::NoteChange(PlanChange change) {
  const int64_t now_ms = UnixMilliseconds(clock_);
  MutexLock lock(&mutex_);
  std::erase_if(changes_, [&](const auto& entry) {
    const int64_t age_ms = now_ms - entry.second.unix_ms;
    return entry.first == change.plan_key || age_ms > kChangeWait / std::chrono::milliseconds(1);
  });
  std::map<std::string_view, size_t> counts;
  for (const auto& [plan, other] : changes_) ++counts[other.tenant];
  std::string tenant = change.tenant;
  const bool own_full = counts[tenant] >= kMaxChangesOfTenant;
  if (!own_full && changes_.size() >= kMaxChanges) {
    const auto most =
        std::max_element(counts.begin(), counts.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    tenant = most->first;
  }
  if (own_full || changes_.size() >= kMaxChanges) {
    auto oldest = changes_.end();
    for (auto at = changes_.begin(); at != changes_.end(); ++at) {
      if (at->second.tenant != tenant) continue;
      if (oldest == changes_.end() || at->second.unix_ms < oldest->second.unix_ms) oldest = at;
    }
    if (oldest != changes_.end()) changes_.erase(oldest);
  }
  change.unix_ms = now_ms;
  const Digest plan = change.plan_key;
  changes_.emplace(plan, std::move(change));
  dirty_ = true;
}

std::optional<PlanChange> EpochBook::ChangeOf(const Digest& plan) const {
  MutexLock lock(&mutex_);
  const auto at = changes_.find(plan);
  return at == changes_.end() ? std::nullopt : std::optional<PlanChange>(at->second);
}

void EpochBook::DropChange(const Digest& plan) {
  MutexLock lock(&mutex_);
  if (changes_.erase(plan) > 0) dirty_ = true;
}

void EpochBook::Keep(const Digest& plan, int64_t epoch) {
  MutexLock lock(&mutex_);
  if (!kept_set_.insert({plan, epoch}).second) return;
  kept_.emplace_back(plan, epoch);
  if (kept_.size() > kMaxKept) {
    kept_set_.erase(kept_.front());
    kept_.pop_front();
  }
  dirty_ = true;
}

bool EpochBook::IsKept(const Digest& plan, int64_t epoch) const {
  MutexLock lock(&mutex_);
  return kept_set_.contains({plan, epoch});
}

EpochList EpochBook::List(std::optional<std::string_view> tenant) const {
  EpochList out;
  MutexLock lock(&mutex_);
  for (auto at = epochs_.rbegin(); at != epochs_.rend(); ++at) {
    const bool shows = !tenant.has_value() || at->tenant.empty() || at->tenant == *tenant;
    if (!shows) continue;
    if (out.epochs.size() == kMaxListed) break;
    out.epochs.push_back(*at);
    // Names of plans are their owners'.
    if (tenant.has_value() && at->tenant != *tenant) out.epochs.back().plans.clear();
  }
  std::copy_if(decisions_.rbegin(), decisions_.rend(), std::back_inserter(out.decisions),
               [&](const LearnedDecision& decision) {
                 return !tenant.has_value() || decision.tenant == *tenant;
               });
  return out;
}

LearningStats EpochBook::Stats() const {
  MutexLock lock(&mutex_);
  LearningStats out{.renewals_waiting = static_cast<int64_t>(renewals_.size()),
                    .renewals_changed = changed_,
                    .renewals_kept = unchanged_};
  for (const Epoch& epoch : epochs_) ++out.epochs[epoch.state()];
  return out;
}

}  // namespace fusion
