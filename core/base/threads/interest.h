#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/base/clock.h"
#include "core/base/threads/mutex.h"

namespace fusion {

/// Counts the callers that want the result of some work. The interest is lost, and the work may be
/// abandoned, once it has had no waiter for the grace period `linger`. A caller that retries within
/// it finds the work still running.
///
///   Interest interest(clock, std::chrono::seconds(30));
///   if (!interest.Join("acme")) ... it was abandoned: start again ...
///   ... interest.Leave("acme");
///   if (interest.IsLost()) ... stop: no Join will succeed from now on ...
///
/// Thread-safe; `clock` must outlive it.
class Interest {
 public:
  /// With this `linger` the interest is never lost.
  static constexpr Nanoseconds kForEver = Nanoseconds::max();
  Interest(const Clock& clock, Nanoseconds linger) : clock_(clock), linger_(linger) {}

  /// Adds a caller of `tenant`. False, without effect, if the interest is lost.
  bool Join(const std::string& tenant) {
    MutexLock lock(&mutex_);
    if (Expired()) return false;
    ++wanted_[tenant];
    return true;
  }
  /// Removes a caller that joined. Call it once for each successful Join, with the same tenant.
  void Leave(const std::string& tenant) {
    MutexLock lock(&mutex_);
    auto of = wanted_.find(tenant);
    if (--of->second == 0) wanted_.erase(of);
    if (wanted_.empty()) left_at_ = clock_.Now();
  }
  /// Adds a caller that will not Leave: from now on the interest cannot be lost. No effect if it is
  /// lost already.
  void Keep() {
    MutexLock lock(&mutex_);
    if (!lost_) kept_ = true;
  }

  /// True if a caller of a tenant other than `tenant` wants the result.
  bool IsWantedBeside(const std::string& tenant) {
    MutexLock lock(&mutex_);
    return wanted_.size() > wanted_.count(tenant);
  }

  /// Call it before the work starts. True if the work should start because a caller wants it now,
  /// it is kept, or `linger` is kForEver. Otherwise the interest is lost at once, without grace
  /// period: no work has been done yet.
  bool Begin() {
    MutexLock lock(&mutex_);
    lost_ = lost_ || (wanted_.empty() && !kept_ && linger_ != kForEver);
    return !lost_;
  }

  /// True once it has had no waiter for `linger`. Stays true. An interest that no caller
  /// has ever joined does not expire.
  bool IsLost() {
    MutexLock lock(&mutex_);
    return Expired();
  }

 private:
  bool Expired() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (lost_ || kept_ || !wanted_.empty() || linger_ == kForEver) return lost_;
    lost_ = left_at_.has_value() && clock_.Now() - *left_at_ >= linger_;
    return lost_;
  }

  const Clock& clock_;
  const Nanoseconds linger_;
  Mutex mutex_;
  std::map<std::string, int64_t> wanted_ ABSL_GUARDED_BY(mutex_);  // by tenant; counts > 0
  std::optional<Nanoseconds> left_at_ ABSL_GUARDED_BY(mutex_);     // the last caller
  bool kept_ ABSL_GUARDED_BY(mutex_) = false;
  bool lost_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace fusion
