#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/base/clock.h"
#include "core/base/threads/mutex.h"

namespace fusion {

/// How many still want the outcome of something under way, and when it may be given up: once
/// nobody has wanted it for `linger`. Who comes back in time, as a caller that tries again does,
/// finds it going on.
///
///   Interest interest(clock, std::chrono::seconds(30));
///   if (!interest.Join("acme")) ... it was given up: begin anew ...
///   ... interest.Leave("acme");
///   if (interest.IsLost()) ... stop: no Join will succeed from now on ...
///
/// Thread-safe; `clock` outlives it.
class Interest {
 public:
  /// `linger` of kForEver: it is never lost.
  static constexpr Nanoseconds kForEver = Nanoseconds::max();
  Interest(const Clock& clock, Nanoseconds linger) : clock_(clock), linger_(linger) {}

  /// Somebody of `tenant` wants it. False if it is lost.
  bool Join(const std::string& tenant) {
    MutexLock lock(&mutex_);
    if (Expired()) return false;
    ++wanted_[tenant];
    return true;
  }
  void Leave(const std::string& tenant) {
    MutexLock lock(&mutex_);
    auto of = wanted_.find(tenant);
    if (--of->second == 0) wanted_.erase(of);
    if (wanted_.empty()) left_at_ = clock_.Now();
  }
  /// Somebody wants it who will not say when he no longer does.
  void Keep() {
    MutexLock lock(&mutex_);
    if (!lost_) kept_ = true;
  }

  /// Whether somebody of another tenant wants it.
  bool IsWantedBeside(const std::string& tenant) {
    MutexLock lock(&mutex_);
    return wanted_.size() > wanted_.count(tenant);
  }

  /// Whether it is to begin: somebody wants it now. If not it is lost at once, for there is nothing
  /// yet that would be in vain.
  bool Begin() {
    MutexLock lock(&mutex_);
    lost_ = lost_ || (wanted_.empty() && !kept_ && linger_ != kForEver);
    return !lost_;
  }

  /// Whether nobody has wanted it for long enough; once true always true.
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
  std::map<std::string, int64_t> wanted_ ABSL_GUARDED_BY(mutex_);  // by tenant, none of zero
  std::optional<Nanoseconds> left_at_ ABSL_GUARDED_BY(mutex_);     // the last one
  bool kept_ ABSL_GUARDED_BY(mutex_) = false;
  bool lost_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace fusion
