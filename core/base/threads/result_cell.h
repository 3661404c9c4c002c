#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "core/base/threads/cancel.h"
#include "core/base/threads/mutex.h"

namespace fusion {

/// The result of something under way, for any number of waiters.
///
///   ResultCell<Plan> cell;
///   absl::StatusOr<Plan> plan = cell.Wait(request_cancel);  // on the threads of those who want it
///   cell.Set(MakePlan(...));                                // once, on the thread that makes it
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

  /// The result; kCancelled or kDeadlineExceeded if `waiter` ends before there is one. Calls
  /// `meanwhile` (may be empty) now and then while there is none.
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
  // Between two looks at what does not notify. Of many that wait, as under overload, looks are work
  // that the machine lacks elsewhere: none that need not be.
  static constexpr Nanoseconds kSlice = std::chrono::milliseconds(10);
  static constexpr Nanoseconds kLongSlice = std::chrono::seconds(1);

  mutable Mutex mutex_;
  mutable CondVar set_;
  std::optional<absl::StatusOr<T>> result_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusion
