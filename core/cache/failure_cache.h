#pragma once

#include <optional>

#include "core/base/clock.h"
#include "core/base/hash.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "core/cache/lru_map.h"

namespace fusion {

/// Remembers for a while why something failed, so that a kernel that does not compile, or that
/// kills its compiler, is not tried again with every request.
///
///   if (auto why = failures.Find(key)) return *why;
///   ... failures.Remember(key, status, std::chrono::minutes(10));
///
/// Holds at most `limit` failures, the least recently used forgotten first. Thread-safe; `clock`
/// outlives it.
class FailureCache {
 public:
  explicit FailureCache(int64_t limit, const Clock& clock = Clock::Real())
      : clock_(clock), failures_(limit) {}

  void Remember(const Digest& key, const absl::Status& status, Nanoseconds ttl) {
    MutexLock lock(&mutex_);
    failures_.Insert(key, {status, clock_.Now() + ttl}, /*cost=*/1);
  }

  /// The remembered status; nullopt if there is none or its time is up.
  std::optional<absl::Status> Find(const Digest& key) {
    MutexLock lock(&mutex_);
    Failure* failure = failures_.Find(key);
    if (failure == nullptr) return std::nullopt;
    if (clock_.Now() < failure->until) return failure->status;
    failures_.Erase(key);
    return std::nullopt;
  }

  /// Whether there was one whose time was not up.
  bool Forget(const Digest& key) {
    MutexLock lock(&mutex_);
    Failure* failure = failures_.Find(key);
    bool known = failure != nullptr && clock_.Now() < failure->until;
    failures_.Erase(key);
    return known;
  }
  /// How many there were.
  int64_t ForgetAll() {
    MutexLock lock(&mutex_);
    auto known = static_cast<int64_t>(failures_.size());
    failures_.Clear();
    return known;
  }

  int64_t size() const {
    MutexLock lock(&mutex_);
    return static_cast<int64_t>(failures_.size());
  }

 private:
  struct Failure {
    absl::Status status;
    Nanoseconds until;
  };

  const Clock& clock_;
  mutable Mutex mutex_;
  LruMap<Digest, Failure> failures_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusion
