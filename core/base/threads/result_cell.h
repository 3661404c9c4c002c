#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "core/base/threads/cancel.h"
#include "core/base/threads/mutex.h"

namespace fusion {

/// The result of running work, for any number of waiters.
///
///   ResultCell<Plan> cell;
///   absl::StatusOr<Plan> plan = cell.Wait(request_cancel);  // on the waiters' threads
///   cell.Set(MakePlan(...));                                // once, on the working thread
///
/// Thread-safe.
template <typename T>
class ResultCell {
 public:
  void Set(absl::StatusOr<T> result) {
    MutexLock lock(&mutex_);
    result_ = std::move(result);
    set_.NotifyAll();
  }

  /// Blocks until there is a result and returns a copy of it; kCancelled or kDeadlineExceeded if
  /// `waiter` ends first. While it waits it calls `meanwhile` (may be empty) about every 10 ms,
  /// without the lock.
  absl::StatusOr<T> Wait(const CancelToken& waiter,
                         const std::function<void()>& meanwhile = nullptr) const {
    const Nanoseconds slice = waiter.EndsBySignal() && !meanwhile ? kLongSlice : kSlice;
    CancelToken::Watch watch(waiter, [this] {
      MutexLock lock(&mutex_);
      set_.NotifyAll();
    });
    for (;;) {
      {
        MutexLock lock(&mutex_);
        if (result_.has_value()) return *result_;
        RETURN_IF_ERROR(waiter.Check());
        set_.WaitFor(&mutex_, std::min(slice, waiter.Remaining().value_or(slice)));
        if (result_.has_value()) return *result_;
      }
      if (meanwhile) meanwhile();
    }
  }

  bool IsSet() const {
    MutexLock lock(&mutex_);
    return result_.has_value();
  }

 private:
  // Polling intervals. With many waiters, as under overload, polling costs CPU time: tokens that
  // end by a signal are polled rarely.
  static constexpr Nanoseconds kSlice = std::chrono::milliseconds(10);
  static constexpr Nanoseconds kLongSlice = std::chrono::seconds(1);

  mutable Mutex mutex_;
  mutable CondVar set_;
  std::optional<absl::StatusOr<T>> result_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusion
