#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <optional>
#include <vector>

#include "core/base/clock.h"
#include "core/base/threads/cancel.h"
#include "core/base/threads/mutex.h"
#include "core/bundle/measured/accuracy.h"
#include "core/bundle/measured/report_origin.h"
#include "core/cache/record_store.h"
#include "core/cache/store.h"
#include "core/learn/device_models.h"
#include "core/learn/observations.h"
#include "core/learn/recent_reports.h"

namespace fusion {

/// OK if `report` can be compared with the estimates of `plan`. InvalidArgument, naming the field,
/// if a launch is not one of the plan, or if the plan has open dims or loops. NotFound if the
/// report is about an earlier plan with the same key and other kernels.
absl::Status CheckFits(const LatencyReport& report, const Plan& plan);

/// Measured and estimated times of each kernel of a plan. `measurements` must be of the kernels
/// that the plan launches now (PlanMeasurements::kernels).
PlanReport MakeReport(const StoredPlan& stored, const PlanMeasurements& measurements);

/// What became of a report.
struct AddedReport {
  int64_t samples = 0;     // that are used
  bool duplicate = false;  // a report with its id was stored before; this one was not
};

/// Latencies that runtimes report for the plans of this server. Validates and stores reports, and
/// compares them with the estimates.
///
///   LatencyBook book(store, measurements, timings, clock);
///   ASSIGN_OR_RETURN(int64_t samples, book.Add(report, tenant));
///   ASSIGN_OR_RETURN(std::vector<PlanReport> reports, book.Reports(std::nullopt, 100, cancel));
///
/// Thread-safe; concurrent reports for a plan are all kept. The constructor's arguments must
/// outlive it.
class LatencyBook {
 public:
  LatencyBook(Store& plans, MeasurementStore& measurements, TimingStore& timings,
              const Clock& clock = Clock::Real());

  /// Told of each report that was stored, with the times of its kernels: all that are kept of this
  /// caller's. Called on the threads of Add.
  using Listener =
      std::function<void(const StoredPlan& plan, const std::vector<KernelTimings>& measured)>;
  /// Set it before the first Add.
  void SetListener(Listener listener) { listener_ = std::move(listener); }

  /// Stores a report of a caller of `tenant`, all of it or nothing. `trusted`: the caller has the
  /// role for it (KernelTimings::trusted). Times of single kernels, for
  /// Accuracy, are left out if they cannot be stored. Returns the number of samples that are used;
  /// 0 for runs with another number of threads than the plan's, see AddReport. NotFound: the server
  /// does not have the plan (any more), or see CheckFits. InvalidArgument: see CheckFits.
  /// ResourceExhausted, Unavailable: it cannot be stored.
  absl::StatusOr<int64_t> Add(const LatencyReport& report, std::string_view tenant,
                              bool trusted = false);

  /// The timings of all reports. The book must outlive the result.
  TimingSource Timings();

  /// The same for a report with `origin`. One whose id is among the newest of the tenant
  /// (RecentReports) is not stored again; the ids are lost with the process. One that was measured
  /// under more than kMaxBackgroundLoad gives no samples: its calls and runs are counted.
  absl::StatusOr<AddedReport> Add(const LatencyReport& report, const ReportOrigin& origin,
                                  std::string_view tenant, bool trusted = false);

  /// Adds times of a kernel, for Accuracy: of a report, or what this server measured itself. Errors
  /// as RecordStore::Put; the times so far stay.
  absl::Status Note(const KernelTimings& timings);

  /// As FitDevices, of the timings of all reports, and of the runs of the plans that were reported
  /// last: at most kMaxRunPlans, and those that the tenant may see. One call at a time: others
  /// wait, as long as `cancel` allows. `before` is called when it is this one's turn; its error
  /// ends the call. Use it to reserve kFitBytes of memory.
  absl::StatusOr<std::vector<DeviceAccuracy>> Accuracy(std::string_view tenant,
                                                       const CancelToken& cancel,
                                                       const std::function<absl::Status()>& before);

  static constexpr size_t kMaxRunPlans = 1000;

  /// True if the caller may see the plan.
  using Shows = std::function<bool(const StoredPlan& plan)>;
  /// Reports of one plan, or of at most `limit` plans, the latest report first.
  /// Returns fewer, but never none, once they hold kMaxReportBytes or once kMaxReadBytes were read.
  /// Treats plans for which `shows` (empty: all are shown) is false as if the server did not have
  /// them, and stops after kMaxHiddenBytes of these. Deletes measurements of plans that are gone,
  /// and of kernels that a plan no longer launches. Does not count as a use of the plans
  /// (Store::PeekPlan).
  /// NotFound: the server does not have `plan`. kCancelled, kDeadlineExceeded: `cancel` has ended.
  absl::StatusOr<std::vector<PlanReport>> Reports(const std::optional<Digest>& plan, int limit,
                                                  const CancelToken& cancel,
                                                  const Shows& shows = nullptr);

  /// Limit for the result of Reports, as approximate bytes of its message: a thousand plans of a
  /// dozen kernels each. In memory a result takes about four times that, for each concurrent call.
  static constexpr int64_t kMaxReportBytes = int64_t{2} << 20;
  /// Limit for the plans and measurements that one Reports reads and returns (ChargedBytes). The
  /// same as for a list of plans.
  static constexpr int64_t kMaxReadBytes = int64_t{32} << 20;
  /// Limit for the hidden plans that one Reports reads (ChargedBytes). Chosen: takes about a second
  /// to read.
  static constexpr int64_t kMaxHiddenBytes = int64_t{256} << 20;

 private:
  std::optional<PlanMeasurements> ReadCurrent(const Digest& plan, const Digest& kernels);
  void ForgetUnlessThere(const Digest& plan);
  absl::StatusOr<int64_t> StoreReport(const LatencyReport& report, const ReportOrigin& origin,
                                      std::string_view tenant, bool trusted);
  KernelTimings NoteAndGet(const KernelTimings& timings);
  // Runs of plans that are the tenant's or shared, for Accuracy.
  absl::StatusOr<PlansOfDevices> RunsOf(std::string_view tenant, const CancelToken& cancel);
  // Adds the measured times op by op, if there are any. Returns the bytes that were read.
  int64_t AddBaseline(const StoredPlan& stored, const Shows& shows, PlanReport* report);
  Mutex& MutexOf(const Digest& key) { return mutexes_[key.bytes[0] % mutexes_.size()]; }

  Store& plans_;
  MeasurementStore& measurements_;
  TimingStore& timings_;
  const Clock& clock_;
  Listener listener_;
  std::atomic<bool> fitting_ = false;  // during Accuracy
  // A read-modify-write of a record holds the mutex of its key, never two of them.
  std::array<Mutex, 16> mutexes_;
  // Held while a report with an id is stored, by its id, before any of `mutexes_`: the second of
  // two equal reports waits for the outcome of the first.
  std::array<Mutex, 16> id_mutexes_;
  Mutex recent_mutex_;
  RecentReports recent_ ABSL_GUARDED_BY(recent_mutex_);
};

}  // namespace fusion
