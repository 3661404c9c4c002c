#pragma once

#include <functional>
#include <map>

#include "core/base/threads/mutex.h"

namespace fusion {

/// Ends calls before their deadline: those under way and those that begin later.
///
///   CallStop stop;
///   std::unique_ptr<Client> limited = client.Limited({.stop = &stop});
///   ...                          // on another thread: stop.Stop();
///
/// Thread-safe. Outlives the calls that look at it.
class CallStop {
 public:
  void Stop() {
    MutexLock lock(&mutex_);
    stopped_ = true;
    for (auto& [call, end] : calls_) end();
    changed_.NotifyAll();
  }
  bool stopped() const {
    MutexLock lock(&mutex_);
    return stopped_;
  }
  /// Waits that long, or until Stop. False once it is stopped.
  bool Wait(Nanoseconds time) {
    const Nanoseconds end = Clock::Real().Now() + time;
    MutexLock lock(&mutex_);
    for (;;) {
      const Nanoseconds left = end - Clock::Real().Now();
      if (stopped_ || left <= Nanoseconds(0)) return !stopped_;
      changed_.WaitFor(&mutex_, left);
    }
  }

  /// A call for as long as this lives; Stop calls `end`, which does not block, also of one that
  /// begins after it. `stop` may be null.
  class Scope {
   public:
    Scope(CallStop* stop, std::function<void()> end) : stop_(stop) {
      if (stop_ == nullptr) return;
      MutexLock lock(&stop_->mutex_);
      if (stop_->stopped_) end();
      stop_->calls_.emplace(this, std::move(end));
    }
    ~Scope() {
      if (stop_ == nullptr) return;
      MutexLock lock(&stop_->mutex_);
      stop_->calls_.erase(this);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    CallStop* stop_;
  };

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<const Scope*, std::function<void()>> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusion
