#pragma once

#include <optional>

#include "core/base/threads/cancel.h"
#include "core/base/threads/mutex.h"
#include "core/learn/latency_book.h"
#include "server/observe/metrics.h"
#include "server/observe/snapshot.h"
#include "server/rpc/server_status.h"

namespace fusion {

/// The use of one reported plan. Without measured runs its median is the sum over its kernels.
PlanUse UseOf(const PlanReport& report);

/// At most `limit` plans that took most time, most first.
std::vector<PlanUse> TopPlans(const std::vector<PlanReport>& reports, size_t limit);

/// Finished calls of all methods by code.
CodeCounts FinishedCalls(const ServerStatus& status);

/// The answer of GetServerStatus, without `top_plans`.
ServerStatus StatusOf(const ServerSnapshot& now, const Metrics& metrics, const Clock& clock);

/// The plans that take most time, of those with the latest reports. Reading them costs up to
/// LatencyBook::kMaxReadBytes, so they are read at most every five seconds, by one caller; others
/// get the previous ones meanwhile. Thread-safe. `book` and `clock` must outlive it.
class RecentTopPlans {
 public:
  static constexpr int kReports = 200;                              // that are compared
  static constexpr size_t kPlans = 20;                              // that are kept
  static constexpr Nanoseconds kKept = std::chrono::seconds(5);     // before they are read again
  static constexpr Nanoseconds kReading = std::chrono::seconds(2);  // limit of one read

  explicit RecentTopPlans(LatencyBook& book, const Clock& clock = Clock::Real())
      : book_(book), clock_(clock) {}

  /// Returns the previous ones if `cancel` ends, or if reading takes longer than kReading.
  std::vector<PlanUse> Get(const CancelToken& cancel);

 private:
  LatencyBook& book_;
  const Clock& clock_;
  Mutex mutex_;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Nanoseconds> read_ ABSL_GUARDED_BY(mutex_);  // when
  std::vector<PlanUse> plans_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusion
