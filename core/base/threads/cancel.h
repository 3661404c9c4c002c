#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "core/base/clock.h"
#include "core/base/status.h"
#include "core/base/threads/interest.h"
#include "core/base/threads/mutex.h"

namespace fusion {

/// True for the errors of CancelToken::Check (kCancelled, kDeadlineExceeded): the work was
/// abandoned because no caller waits for the result any more.
inline bool WasGivenUp(const absl::Status& status) {
  return absl::IsCancelled(status) || absl::IsDeadlineExceeded(status);
}

/// Tells the work for one request to stop: it ends when its owner cancels it or at its deadline.
/// Thread-safe; cheap to poll. `clock` must outlive it.
class CancelToken {
 public:
  explicit CancelToken(const Clock& clock = Clock::Real()) : clock_(clock) {}
  CancelToken(const Clock& clock, Nanoseconds deadline) : clock_(clock), deadline_(deadline) {}
  /// Ends when `parent` ends or at `deadline` of the parent's clock, whichever comes first.
  /// `parent` must outlive it.
  CancelToken(const CancelToken& parent, Nanoseconds deadline)
      : clock_(parent.clock_), parent_(&parent), deadline_(deadline) {}

  /// The same; also ends once `interest`, which must outlive it, is lost.
  CancelToken(const CancelToken& parent, Nanoseconds deadline, Interest& interest)
      : clock_(parent.clock_), parent_(&parent), interest_(&interest), deadline_(deadline) {}

  /// Ends the token, and calls the `wake` of its watches on this thread.
  void Cancel() {
    cancelled_.store(true, std::memory_order_release);
    MutexLock lock(&mutex_);
    for (const Watch* watch : watches_) watch->wake_();
  }

  /// During its lifetime, calls `wake` when `token` or one of its parents is cancelled, on the
  /// thread that calls Cancel. It does not report earlier cancellations, deadlines or lost
  /// interest: poll Check for these. `wake` must not use the token, nor create or destroy a Watch.
  /// `token` must outlive it.
  class Watch {
   public:
    Watch(const CancelToken& token, std::function<void()> wake)
        : token_(token), wake_(std::move(wake)) {
      for (const CancelToken* t = &token_; t != nullptr; t = t->parent_) {
        MutexLock lock(&t->mutex_);
        t->watches_.insert(this);
      }
    }
    ~Watch() {
      for (const CancelToken* t = &token_; t != nullptr; t = t->parent_) {
        MutexLock lock(&t->mutex_);
        t->watches_.erase(this);
      }
    }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    friend class CancelToken;
    const CancelToken& token_;
    const std::function<void()> wake_;
  };

  /// OK, or kCancelled / kDeadlineExceeded.
  absl::Status Check() const {
    if (parent_ != nullptr) RETURN_IF_ERROR(parent_->Check());
    if (cancelled_.load(std::memory_order_acquire)) return Cancelled("request cancelled");
    if (interest_ != nullptr && interest_->IsLost())
      return Cancelled("nobody waits for it any more");
    if (deadline_ && clock_.Now() >= *deadline_) return DeadlineExceeded("request deadline passed");
    return absl::OkStatus();
  }

  /// Time left before the deadline; nullopt without one. Never negative.
  std::optional<Nanoseconds> Remaining() const {
    if (!deadline_) return std::nullopt;
    Nanoseconds left = *deadline_ - clock_.Now();
    if (parent_ != nullptr) left = std::min(left, parent_->Remaining().value_or(left));
    return left.count() > 0 ? left : Nanoseconds(0);
  }

  /// True if a waiter need not poll: the token ends only by a Cancel, which a Watch reports, or at
  /// a deadline of the real clock, after Remaining. False if it can also end by lost interest or by
  /// another clock: then a waiter has to call Check periodically.
  bool EndsBySignal() const {
    return interest_ == nullptr && &clock_ == &Clock::Real() &&
           (parent_ == nullptr || parent_->EndsBySignal());
  }

 private:
  const Clock& clock_;
  const CancelToken* parent_ = nullptr;
  Interest* interest_ = nullptr;
  std::optional<Nanoseconds> deadline_;
  std::atomic<bool> cancelled_{false};
  mutable Mutex mutex_;
  mutable std::set<const Watch*> watches_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusion
