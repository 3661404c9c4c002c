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

/// Remembers failures for a limited time, so that a kernel that does not compile, or that crashes
/// its compiler, is not retried with every request.
///
///   if (auto failure = failures.Find(key)) return failure->why;
///   ... failures.Remember(key, {status, tenant}, std::chrono::minutes(10));
///
/// Holds at most `limit` failures and evicts the least recently used first. `clock` must outlive
/// it. Thread-safe.
class FailureCache {
 public:
  struct Failure {
    absl::Status why;
    std::string tenant = {};  // the tenant it belongs to, if tenants are isolated
  };

  explicit FailureCache(int64_t limit, const Clock& clock = Clock::Real())
      : clock_(clock), failures_(limit) {}

  /// Adds or replaces. `ttl`: time after which the failure is forgotten.
  void Remember(const Digest& key, Failure failure, Nanoseconds ttl) {
    MutexLock lock(&mutex_);
    failures_.Insert(key, {std::move(failure), clock_.Now() + ttl}, /*cost=*/1);
  }

  /// The failure of `key`; nullopt if none is remembered, or it has expired.
  std::optional<Failure> Find(const Digest& key) {
    MutexLock lock(&mutex_);
    Remembered* known = failures_.Find(key);
    if (known == nullptr) return std::nullopt;
    if (clock_.Now() < known->until) return known->failure;
    failures_.Erase(key);
    return std::nullopt;
  }

  /// Forgets the failure of `key`. True if there was one that had not expired.
  bool Forget(const Digest& key) {
    MutexLock lock(&mutex_);
    Remembered* remembered = failures_.Find(key);
    bool known = remembered != nullptr && clock_.Now() < remembered->until;
    failures_.Erase(key);
    return known;
  }
  /// Forgets all failures. Returns their number, expired ones included.
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
