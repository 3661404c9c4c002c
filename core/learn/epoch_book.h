#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/logging.h"
#include "core/base/threads/mutex.h"
#include "core/bundle/measured/epoch.h"

namespace fusion {

/// A stored plan is to be made again.
struct Renewal {
  PlanCalibration calibration;
  /// Node of the canonical graph -> why it must not be fused. These come on top of those that the
  /// plan keeps apart already.
  std::map<int, std::string> unfuse;
  /// Nodes that may be fused again.
  std::vector<int> fuse_again;
  /// The plan is replaced only if the new one is estimated to be faster by more than this fraction;
  /// both are estimated with the constants of `calibration`. Below 0: it is replaced in any case.
  double least_gain = -1;
};

/// What became of a renewal.
struct RenewalOutcome {
  bool changed = false;
  double old_us = 0;  // estimates of a run with the constants of the renewal
  double new_us = 0;
  std::string reason;  // why not changed
};

struct EpochBookOptions {
  /// File that holds epochs and decisions, replaced atomically. Empty: they end with the process.
  std::string path;
  /// Share of new plans that a canary epoch is for, 0..100.
  int canary_percent = 20;
};

/// State of what a server has learned. Totals count from the start.
struct LearningStats {
  std::map<EpochState, int64_t> epochs;                  // that are kept
  int64_t renewals_waiting = 0;                          // plans that are to be made again
  int64_t renewals_changed = 0;                          // total that became other plans
  int64_t renewals_kept = 0;                             // total that stayed as they were
  int64_t drifts = 0;                                    // total of alarms (Learner::drifts)
  std::map<TimedDevice, double> measured_over_expected;  // Learner::MeasuredOverExpected
};

/// The epochs of a server, which of them is in force, the stored plans that are to be made again,
/// and the log of what was decided.
///
/// Of each tenant and kind of device at most one epoch is active, and one more is in the shadow or
/// a canary. Plans that tenants share use epochs of the empty tenant; plans of a tenant's own use
/// that tenant's, or if it has none, those of the empty tenant.
///
/// Changes are in the file after Flush, and after the destructor. Thread-safe. `logger` and `clock`
/// outlive it.
class EpochBook {
 public:
  /// Epochs that are kept: of all tenants, of one tenant, and the rejected ones of one kind of
  /// device. Of a tenant's that are not in use the oldest is dropped first, a rejected one before
  /// others. A tenant cannot displace epochs of others.
  static constexpr size_t kMaxEpochs = 512;
  static constexpr size_t kMaxEpochsOfTenant = 64;
  static constexpr size_t kMaxRejected = 4;
  /// Texts are cut to this.
  static constexpr size_t kMaxTextBytes = 300;
  static constexpr size_t kMaxDecisions = 256;
  /// The most plans that wait for renewal: of all tenants, and of one tenant. A request is
  /// dropped if the plan is not requested within kRenewalWait.
  static constexpr size_t kMaxRenewals = 4096;
  static constexpr size_t kMaxRenewalsOfTenant = 512;
  static constexpr Nanoseconds kRenewalWait = std::chrono::hours(1);
  /// The most changes of plans that wait for a judgement: of all tenants, and of one tenant. The
  /// oldest of the tenant who has most makes room for the next. Changes are dropped after
  /// kChangeWait.
  static constexpr size_t kMaxChanges = 4096;
  static constexpr size_t kMaxChangesOfTenant = 512;
  static constexpr Nanoseconds kChangeWait = std::chrono::hours(24 * 7);
  /// The most plans that are kept as they are, because a change made them slower.
  static constexpr size_t kMaxKept = 4096;

  /// Reads the file. A damaged one is logged and moved to "<path>.damaged"; then there are no
  /// epochs. Unavailable: it cannot be read.
  static absl::StatusOr<std::unique_ptr<EpochBook>> Open(EpochBookOptions options, Logger& logger,
                                                         const Clock& clock = Clock::Real());

  ~EpochBook() { Flush(); }
  EpochBook(const EpochBook&) = delete;
  EpochBook& operator=(const EpochBook&) = delete;

  /// Writes what has changed to the file. A failure is logged, and the next call tries again.
  void Flush();

  /// The constants for a plan that is made now.
  PlanCalibration ForNewPlan(std::string_view tenant, const TimedDevice& device,
                             const Digest& plan_key) const;
  /// The constants of the active epoch; those of the spec if there is none.
  PlanCalibration InForce(std::string_view tenant, const TimedDevice& device) const;

  /// The epoch of exactly this tenant and device in the shadow, or a canary.
  std::optional<Epoch> UnderTrial(std::string_view tenant, const TimedDevice& device) const;
  /// All epochs under trial.
  std::vector<Epoch> UnderTrial() const;

  /// The newest epoch of exactly this tenant and device that was rolled back.
  std::optional<Epoch> LastRolledBack(std::string_view tenant, const TimedDevice& device) const;
  /// nullopt: there is none with this number.
  std::optional<Epoch> Get(int64_t number) const;

  /// Adds an epoch and gives it a number, which is returned; 0: there is no room for one more in
  /// use.
  int64_t Add(Epoch epoch, EpochState state, std::string_view reason);
  /// Changes the state. Becoming active retires the epoch that was. NotFound: there is none.
  /// FailedPrecondition: it is not in the state `from` (any more).
  absl::Status Advance(int64_t number, EpochState from, EpochState to, std::string_view reason);
  /// Takes an epoch back: one under trial is not used any more; for an active one the epoch before
  /// it is active again, if it was not rolled back, else the spec is in force. NotFound: there is
  /// no epoch with this number. FailedPrecondition: it is not in use.
  absl::Status RollBack(int64_t number, std::string_view reason);
  /// Notes what an epoch changes, or would change.
  void NotePlan(int64_t number, EpochPlan plan);

  /// Asks for a plan to be made again, instead of an earlier request for it. False: there is no
  /// room. `tenant`: whose plan it is; empty: shared.
  bool Want(const Digest& plan, std::string_view tenant, Renewal renewal);
  /// True if it is to be made again. Cheap.
  bool IsWanted(const Digest& plan) const;
  /// Hands the request out, once.
  std::optional<Renewal> Take(const Digest& plan);
  /// Notes the outcome of a renewal that was taken, and tells the listener.
  void OnRenewed(const Digest& plan, std::string_view model_name, std::string_view tenant,
                 const Renewal& renewal, const RenewalOutcome& outcome);
  /// Told of the outcomes of renewals, on the threads that make them. Set it before plans are made.
  using Listener = std::function<void(const Digest& plan, std::string_view tenant,
                                      const RenewalOutcome& outcome)>;
  void SetListener(Listener listener) { listener_ = std::move(listener); }

  /// Notes a change of a plan until it is judged, instead of an earlier one of that plan.
  void NoteChange(PlanChange change);
  std::optional<PlanChange> ChangeOf(const Digest& plan) const;
  void DropChange(const Digest& plan);

  /// Notes that a plan became slower when it was made with `epoch` (0: when a fusion was undone),
  /// so that this is not tried again.
  void Keep(const Digest& plan, int64_t epoch);
  bool IsKept(const Digest& plan, int64_t epoch) const;

  void Log(LearnedDecision decision);

  /// What callers of `tenant` may see: epochs of shared plans without the plans, their own epochs,
  /// and decisions about their own plans. nullopt: everything.
  EpochList List(std::optional<std::string_view> tenant) const;
  static constexpr size_t kMaxListed = 64;  // epochs, the newest
  /// Without what Learner knows.
  LearningStats Stats() const;
  int64_t wanted() const { return wanted_.load(std::memory_order_relaxed); }

 private:
  EpochBook(EpochBookOptions options, Logger& logger, const Clock& clock)
      : options_(std::move(options)), logger_(logger), clock_(clock) {}

  absl::Status Read();
  Epoch* Find(int64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  const Epoch* InState(std::string_view tenant, const TimedDevice& device, EpochState state) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  const Epoch* ActiveFor(std::string_view tenant, const TimedDevice& device) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetState(Epoch* epoch, EpochState state, std::string_view reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether one more plan of the tenant can wait to be made again.
  bool HasRoom(std::string_view tenant) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const EpochBookOptions options_;
  Logger& logger_;
  const Clock& clock_;
  Listener listener_;
  std::atomic<int64_t> wanted_{0};
  Mutex writing_;  // held by Flush; acquired before mutex_
  mutable Mutex mutex_;
  int64_t next_ ABSL_GUARDED_BY(mutex_) = 1;
  std::vector<Epoch> epochs_ ABSL_GUARDED_BY(mutex_);              // by number
  std::deque<LearnedDecision> decisions_ ABSL_GUARDED_BY(mutex_);  // oldest first
  struct Wanted {
    Renewal renewal;
    std::string tenant;
    Nanoseconds since{0};
  };
  std::map<Digest, Wanted> renewals_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::pair<Digest, int64_t>> kept_ ABSL_GUARDED_BY(mutex_);  // oldest first
  std::set<std::pair<Digest, int64_t>> kept_set_ ABSL_GUARDED_BY(mutex_);
  std::map<Digest, PlanChange> changes_ ABSL_GUARDED_BY(mutex_);
  int64_t changed_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t unchanged_ ABSL_GUARDED_BY(mutex_) = 0;
  bool dirty_ ABSL_GUARDED_BY(mutex_) = false;  // the file lacks something
};

}  // namespace fusion
