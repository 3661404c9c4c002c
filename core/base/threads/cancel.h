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

/// True for what CancelToken::Check answers when it is over: nobody waits for the outcome.
inline bool WasGivenUp(const absl::Status& status) {
  return absl::IsCancelled(status) || absl::IsDeadlineExceeded(status);
}

/// One request's right to stop early: cancelled by its owner or by its deadline. Thread-safe; cheap
/// to poll.
class CancelToken {
 public:
  explicit CancelToken(const Clock& clock = Clock::Real()) : clock_(clock) {}
  CancelToken(const Clock& clock, Nanoseconds deadline) : clock_(clock), deadline_(deadline) {}
  /// Ends with `parent`, which outlives it, or at `deadline` of the same clock, whichever is first.
  CancelToken(const CancelToken& parent, Nanoseconds deadline)
      : clock_(parent.clock_), parent_(&parent), deadline_(deadline) {}

  /// The same; ends also once nobody wants the outcome any more. `interest` outlives it.
  CancelToken(const CancelToken& parent, Nanoseconds deadline, Interest& interest)
      : clock_(parent.clock_), parent_(&parent), interest_(&interest), deadline_(deadline) {}

  void Cancel() {
    cancelled_.store(true, std::memory_order_release);
    MutexLock lock(&mutex_);
    for (const Watch* watch : watches_) watch->wake_();
  }

  /// While it lives, calls `wake` when `token` or one that it ends with is cancelled, on the thread
  /// that cancels. One that was cancelled before is for Check to see, and so are deadlines and
  /// interest that is lost. `wake` must not use the token nor make or end a Watch.
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

  /// Whether all that ends it is a Cancel, which a Watch sees, or Remaining of the machine's time;
  /// otherwise who waits has to look now and then.
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
