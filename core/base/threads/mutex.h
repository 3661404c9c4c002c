#pragma once

#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "core/base/clock.h"

namespace fusion {

/// A mutex that clang's -Wthread-safety understands and that ThreadSanitizer sees.
///
///   Mutex mutex_;
///   int jobs_ ABSL_GUARDED_BY(mutex_) = 0;
///   { MutexLock lock(&mutex_);  ++jobs_; }
///
/// Why not absl::Mutex: Debian's Abseil is a shared library without TSan instrumentation, so every
/// access it guards would be reported as a race.
class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

/// Holds a Mutex for the life of a scope.
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_->Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* mutex_;
};

/// Waits on a condition guarded by a Mutex. Every wait has a timeout: callers loop, and check their
/// deadline or cancel token between waits.
class CondVar {
 public:
  /// Unlocks `mutex`, waits for a notification or for `timeout`, and locks it again. May wake up
  /// spuriously.
  void WaitFor(Mutex* mutex, Nanoseconds timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    condition_.wait_for(lock, timeout);
    lock.release();
  }
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace fusion
