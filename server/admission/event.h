#pragma once

#include "core/base/clock.h"
#include "core/base/threads/mutex.h"

namespace fusion {

/// A one-time event that threads can wait for. Thread-safe.
class Event {
 public:
  void Set() {
    MutexLock lock(&mutex_);
    set_ = true;
    changed_.NotifyAll();
  }
  bool IsSet() const {
    MutexLock lock(&mutex_);
    return set_;
  }
  /// Blocks until it is set (true) or `limit` has passed (false).
  bool WaitFor(Nanoseconds limit) {
    const Nanoseconds end = Clock::Real().Now() + limit;
    MutexLock lock(&mutex_);
    while (!set_) {
      const Nanoseconds left = end - Clock::Real().Now();
      if (left <= Nanoseconds(0)) return false;
      changed_.WaitFor(&mutex_, left);
    }
    return true;
  }

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  bool set_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace fusion
