#pragma once

#include <functional>
#include <map>

#include "core/base/threads/mutex.h"

namespace fusion {

/// Cancels calls before their deadline: running ones and later ones.
///
///   CallStop stop;
///   std::unique_ptr<Client> limited = client.Limited({.stop = &stop});
///   ...                          // on another thread: stop.Stop();
///
/// Thread-safe. Outlives the calls that use it.
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
  /// Waits for `time`, or until Stop. False if stopped.
  bool Wait(Nanoseconds time) {
    const Nanoseconds end = Clock::Real().Now() + time;
    MutexLock lock(&mutex_);
    for (;;) {
      const Nanoseconds left = end - Clock::Real().Now();
      if (stopped_ || left <= Nanoseconds(0)) return !stopped_;
      changed_.WaitFor(&mutex_, left);
    }
  }

  /// Registers a call during its lifetime. Stop calls `end`, which must not block or use `stop`;
  /// the constructor calls it if Stop was called before. `stop` may be null.
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
