#pragma once

#include <array>
#include <functional>
#include <optional>
#include <vector>

#include "core/base/clock.h"
#include "core/base/threads/cancel.h"
#include "core/base/threads/mutex.h"
#include "core/cache/measurement_store.h"
#include "core/cache/store.h"

namespace fusion {

/// InvalidArgument, naming the field, unless the launches of a report are launches of `plan`.
/// NotFound if it is about another plan of the same key.
absl::Status CheckFits(const LatencyReport& report, const Plan& plan);

/// What is known about each kernel of a plan: measured beside estimated. `measurements` are of the
/// kernels that it launches.
PlanReport MakeReport(const StoredPlan& stored, const PlanMeasurements& measurements);

/// What runtimes say about the plans of this server: checked, kept, and shown beside what was
/// expected.
///
///   LatencyBook book(store, measurements, clock);
///   ASSIGN_OR_RETURN(int64_t samples, book.Add(report));
///   ASSIGN_OR_RETURN(std::vector<PlanReport> reports, book.Reports(std::nullopt, 100, cancel));
///
/// Thread-safe: of reports that come at once none is lost. Everything referred to outlives it.
class LatencyBook {
 public:
  LatencyBook(Store& plans, MeasurementStore& measurements, const Clock& clock = Clock::Real());

  /// Stores all of a report or nothing; gives the number of samples that are used: none of runs
  /// with another number of threads than the plan's, see AddReport. NotFound: the server does not
  /// have the plan (any more). InvalidArgument: see CheckFits. ResourceExhausted, Unavailable: it
  /// cannot be stored.
  absl::StatusOr<int64_t> Add(const LatencyReport& report);

  /// Whether a plan is one that the caller may know of.
  using Shows = std::function<bool(const StoredPlan& plan)>;
  /// Of one plan, or of at most `limit`, the latest report first. Deletes what is known of plans
  /// that are gone and of kernels that a plan has no longer. Fewer, but never none for that, once
  /// they hold kMaxReportBytes or kMaxReadBytes were read for them. Those that `shows` (empty: all)
  /// says no to are as plans that the server does not have; after kMaxHiddenBytes of them it looks
  /// no further. To look at a plan is no use of it. NotFound: the server does not have `plan`.
  /// kCancelled, kDeadlineExceeded: `cancel` has ended.
  absl::StatusOr<std::vector<PlanReport>> Reports(const std::optional<Digest>& plan, int limit,
                                                  const CancelToken& cancel,
                                                  const Shows& shows = nullptr);

  /// Of what Reports gives, about as it is sent. A thousand plans of a dozen kernels each; in
  /// memory they take some four times that, for every such call under way.
  static constexpr int64_t kMaxReportBytes = int64_t{2} << 20;
  /// Of the plans and measurements that Reports answers from, as they are charged. As much as a
  /// list of plans reads.
  static constexpr int64_t kMaxReadBytes = int64_t{32} << 20;
  /// As read, of plans that are not shown. Chosen: a second or so of reading.
  static constexpr int64_t kMaxHiddenBytes = int64_t{256} << 20;

 private:
  std::optional<PlanMeasurements> ReadCurrent(const Digest& plan, const Digest& kernels);
  void ForgetUnlessThere(const Digest& plan);
  Mutex& MutexOf(const Digest& plan) { return mutexes_[plan.bytes[0] % mutexes_.size()]; }

  Store& plans_;
  MeasurementStore& measurements_;
  const Clock& clock_;
  // Who reads, changes and writes the measurements of a plan holds that of its key.
  std::array<Mutex, 16> mutexes_;
};

}  // namespace fusion
