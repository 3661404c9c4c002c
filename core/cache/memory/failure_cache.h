#pragma once

#include <optional>
#include <string>
#include <utility>

#include "core/base/clock.h"
#include "core/base/hash.h"
#include "core/base/status.h"
#include "core/base/threads/mutex.h"
#include "core/cache/memory/lru_map.h"

namespace fusion {

/// Remembers for a while why something failed, so that a kernel that does not compile, or that
/// kills its compiler, is not tried again with every request.
///
///   if (auto failure = failures.Find(key)) return failure->why;
///   ... failures.Remember(key, {status, tenant}, std::chrono::minutes(10));
///
/// Holds at most `limit` failures, the least recently used forgotten first. Thread-safe; `clock`
/// outlives it.
class FailureCache {
 public:
  struct Failure {
    absl::Status why;
    std::string tenant = {};  // whose it is, where tenants are kept apart
  };

  explicit FailureCache(int64_t limit, const Clock& clock = Clock::Real())
      : clock_(clock), failures_(limit) {}

  void Remember(const Digest& key, Failure failure, Nanoseconds ttl) {
    MutexLock lock(&mutex_);
    failures_.Insert(key, {std::move(failure), clock_.Now() + ttl}, /*cost=*/1);
  }

  /// What is remembered; nullopt if that is nothing or its time is up.
  std::optional<Failure> Find(const Digest& key) {
    MutexLock lock(&mutex_);
    Remembered* known = failures_.Find(key);
    if (known == nullptr) return std::nullopt;
    if (clock_.Now() < known->until) return known->failure;
    failures_.Erase(key);
    return std::nullopt;
  }

  /// Whether there was one whose time was not up.
  bool Forget(const Digest& key) {
    MutexLock lock(&mutex_);
    Remembered* remembered = failures_.Find(key);
    bool known = remembered != nullptr && clock_.Now() < remembered->until;
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
  struct Remembered {
    Failure failure;
    Nanoseconds until;
  };

  const Clock& clock_;
  mutable Mutex mutex_;
  LruMap<Digest, Remembered> failures_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusion
