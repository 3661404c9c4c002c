#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/logging.h"
#include "core/base/threads/cancel.h"
#include "core/base/threads/mutex.h"
#include "core/benefit/calibrate/robust.h"
#include "core/cache/store.h"
#include "core/learn/epoch_book.h"
#include "core/learn/epoch_trial.h"
#include "core/learn/measured_groups.h"
#include "core/learn/observations.h"

namespace fusion {

struct LearnerOptions {
  /// Reports that decide about a canary, and how long it waits for them at most.
  int canary_reports = 8;
  Nanoseconds canary_wait = std::chrono::minutes(10);
  /// Pause between fits for one kind of device: doubles after each that changes nothing.
  Nanoseconds first_pause = std::chrono::seconds(5);
  Nanoseconds longest_pause = std::chrono::hours(1);
};

/// Learns from reported latencies: fits constants, takes them through their states (EpochState),
/// and asks for plans to be made again (EpochBook::Want).
///
/// - A fit is tried once reports have grown by a fifth, or once measured times drift away from what
///   is expected (DriftDetector), but not more often than the pause allows. It becomes an epoch if
///   TryEpoch finds it better.
/// - Shadow: EpochPlan says what the epoch would change about plans that were reported lately.
/// - Canary: after LearnerOptions::canary_reports reports about plans that were made with the
/// epoch,
///   it becomes active, unless their kernels are estimated worse with it than without it: then it
///   is rolled back. Without such plans it becomes active after canary_wait.
/// - Active: a plan that is reported and was made with other constants is made again if the gain
///   exceeds the noise (the epoch's median error on held-back kernels). If its own reports show the
///   new plan slower than the old one, the old one comes back; an epoch that is contradicted more
///   often than confirmed is rolled back.
/// - A fused kernel that is measured slower than its parts (FusionsToUndo) is taken apart, under
/// the
///   same control.
///
/// Constants that were rolled back are not tried again before measurements have doubled, or a drift
/// was seen. Only reports that count for a plan (TimingsForScope) have any effect on it, and what a
/// tenant reports displaces nothing of other tenants. Thread-safe, Tick
/// and Train one at a time. The constructor's arguments outlive it.
class Learner {
 public:
  struct Callbacks {
    /// What the constants would change about a stored plan. FailedPrecondition: it cannot be
    /// planned from its key alone.
    std::function<absl::StatusOr<EpochPlan>(
        const StoredPlan& plan, const PlanCalibration& calibration, const CancelToken& cancel)>
        preview;
    /// Whether the plan must stay: it is pinned.
    std::function<bool(const Digest& plan)> stays = [](const Digest&) { return false; };
  };

  Learner(const LearnerOptions& options, Store& plans, TimingSource timings, EpochBook& book,
          Callbacks callbacks, Logger& logger, const Clock& clock = Clock::Real());

  /// A report about `stored` was stored. `measured`: the times of its kernels by the caller who
  /// reported (TimingsOf), all that are kept.
  void OnReport(const StoredPlan& stored, const std::vector<KernelTimings>& measured);

  /// The server has measured a kernel itself, and stored the times.
  void OnTiming(const KernelTimings& measured);

  /// Does what is due. Call it about once a second.
  void Tick(const CancelToken& cancel);

  /// Tries a fit for every kind of device with reports, due or not. Returns a line for each.
  std::vector<std::string> Train(const CancelToken& cancel);

  /// How far measured times of shared plans are from what the constants in force expect, by kind of
  /// device: at most kMaxShownDevices, those with most reports. exp of the moving average of ln,
  /// with the weight 1/32 for a report; 1: as expected.
  std::map<TimedDevice, double> MeasuredOverExpected() const;
  static constexpr size_t kMaxShownDevices = 16;

  /// Alarms of DriftDetector for shared plans so far.
  int64_t drifts() const;

 private:
  // The tenant whose plans are meant (empty: shared plans), and the kind of device.
  using ScopeKey = std::pair<std::string, TimedDevice>;
  struct RecentPlan {
    Digest key;
    MeasuredPlan measured;
  };
  // What one machine says of a canary: sums of median errors.
  struct CanaryVotes {
    int reports = 0;
    double error = 0;  // with the epoch
    double usual = 0;  // with what is in force
  };
  struct Scope {
    uint64_t used = 0;  // when it was used last, by the count of uses
    int64_t reports = 0;
    int64_t fitted_reports = 0;  // when a fit was tried last
    Nanoseconds next{0};         // no fit before
    Nanoseconds pause{0};
    bool drifted = false;
    std::map<std::string, PageHinkley> drift;  // by voter
    int64_t drift_epoch = 0;                   // whose expectations they have seen
    double distance = 0;                       // moving average of ln(measured / expected)
    int64_t distances = 0;
    int64_t canary_epoch = 0;  // that the following are about
    Nanoseconds canary_since{0};
    std::map<std::string, CanaryVotes> canary;  // by voter
    // Measured plans that are alternatives of each other, by voter; their bytes.
    std::map<std::string, std::vector<RecentPlan>> plans;
    int64_t plan_bytes = 0;
    // Plans that were compared with the constants in force, and the epoch of these.
    std::map<Digest, int64_t> settled;
    // Plans that are left alone for a while, because a change of them came to nothing.
    std::map<Digest, Nanoseconds> rests;
    // By epoch: changed plans that were measured faster, slower.
    std::map<int64_t, std::pair<int, int>> verdicts;
  };

  // A report about a plan, with what was read about it before the lock was taken.
  struct Told {
    const StoredPlan& stored;
    const std::vector<KernelTimings>& measured;
    std::string voter;
    MeasuredGroups groups;
    std::shared_ptr<const StoredPlan> parts;  // its op-by-op plan; null: none is stored
    MeasuredGroups parts_groups;
  };

  static std::vector<std::string> ScopesOf(const StoredPlan& stored, const KernelTimings& measured);
  Scope& ScopeOf(const ScopeKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Told Read(const StoredPlan& stored, const std::vector<KernelTimings>& measured);
  void NoteDrift(const Told& told, const PlanCalibration& in_force, const ScopeKey& key,
                 Scope* scope) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NotePlan(const Told& told, Scope* scope) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void JudgeCanary(const Told& told, const ScopeKey& key, Scope* scope)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DecideCanary(const Epoch& epoch, Scope* scope, bool late)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void JudgeMove(const Told& told, const ScopeKey& key, Scope* scope)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AskForMove(const Told& told, const PlanCalibration& in_force, const ScopeKey& key,
                  Scope* scope) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AskForUndo(const Told& told, const ScopeKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Want(const Told& told, const ScopeKey& key, Renewal renewal)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnRenewed(const Digest& plan, std::string_view tenant, const RenewalOutcome& outcome);
  MeasuredGroups GroupsOf(const StoredPlan& stored, const KernelTimings& voter);
  std::string Fit(const ScopeKey& key, const CancelToken& cancel);
  void ShowShadow(const Epoch& epoch, const CancelToken& cancel);
  void EndCanary(const Epoch& epoch);

  const LearnerOptions options_;
  Store& plans_;
  const TimingSource timings_;
  EpochBook& book_;
  const Callbacks callbacks_;
  Logger& logger_;
  const Clock& clock_;
  mutable Mutex mutex_;
  std::map<ScopeKey, Scope> scopes_ ABSL_GUARDED_BY(mutex_);
  uint64_t uses_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t drifts_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace fusion
