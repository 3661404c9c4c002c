#pragma once

#include <array>
#include <optional>
#include <vector>

#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/cache/measurement_store.h"
#include "core/cache/store.h"

namespace fusion {

/// InvalidArgument, naming the field, unless the launches of a report are launches of `plan`.
/// NotFound if it is about another plan of the same key.
absl::Status CheckFits(const LatencyReport& report, const Plan& plan);

/// What is known about each kernel of a plan: measured beside estimated.
PlanReport MakeReport(const StoredPlan& stored, const PlanMeasurements& measurements);

/// What runtimes say about the plans of this server: checked, kept, and shown beside what was
/// expected.
///
///   LatencyBook book(store, measurements, clock);
///   ASSIGN_OR_RETURN(int64_t samples, book.Add(report));
///   ASSIGN_OR_RETURN(std::vector<PlanReport> reports, book.Reports(std::nullopt, 100));
///
/// Thread-safe: of reports that come at once none is lost. Everything referred to outlives it.
class LatencyBook {
 public:
  LatencyBook(Store& plans, MeasurementStore& measurements, const Clock& clock = Clock::Real());

  /// Stores all of a report or nothing; gives the number of its samples. NotFound: the server does
  /// not have the plan (any more). InvalidArgument: see CheckFits. ResourceExhausted,
  /// Unavailable: it cannot be stored.
  absl::StatusOr<int64_t> Add(const LatencyReport& report);

  /// Of one plan, or of at most `limit`, the latest report first; plans that are gone are left out.
  /// Fewer if they hold more than kMaxReportBytes. NotFound: the server does not have `plan`.
  absl::StatusOr<std::vector<PlanReport>> Reports(const std::optional<Digest>& plan, int limit);

  /// Of what Reports gives, about as it is sent.
  static constexpr int64_t kMaxReportBytes = int64_t{16} << 20;

 private:
  std::optional<PlanMeasurements> Read(const Digest& plan);
  Mutex& MutexOf(const Digest& plan) { return mutexes_[plan.bytes[0] % mutexes_.size()]; }

  Store& plans_;
  MeasurementStore& measurements_;
  const Clock& clock_;
  // Who reads, changes and writes the measurements of a plan holds that of its key.
  std::array<Mutex, 16> mutexes_;
};

}  // namespace fusion
