#pragma once

#include <atomic>
#include <functional>

#include "core/base/thread_pool.h"

namespace fusion {

struct AdmissionLimits {
  int threads = 64;
  int64_t queue = 256;  // calls that may wait while all threads are busy
  int64_t inflight_bytes = int64_t{256} << 20;
};

/// Decides which calls are let in, and runs their work on a fixed number of threads.
///
///   ASSIGN_OR_RETURN(Admission::Pass pass, admission.Enter(request_bytes));
///   admission.Run([] { ... });     // at most one at a time per pass
///
/// A call that holds a pass always finds room in the queue, so a call that has begun is never
/// refused half way. A task may wait (for planning, for compiling): when all threads do, calls that
/// could be answered from the store wait behind them, and beyond `queue` all are refused. The wait
/// of each is bounded: by the caller's deadline, by the limits of planning and of the worker pool.
/// Thread-safe.
class Admission {
 public:
  /// A call that was let in, until the end of its life. Not longer than the Admission.
  class Pass {
   public:
    Pass(Pass&& other) noexcept;
    Pass& operator=(Pass&&) = delete;
    ~Pass();

   private:
    friend class Admission;
    Pass(Admission* admission, int64_t bytes) : admission_(admission), bytes_(bytes) {}
    Admission* admission_;
    int64_t bytes_;
  };

  explicit Admission(const AdmissionLimits& limits);

  /// ResourceExhausted: too many calls, or too many bytes in them. Unavailable: closed.
  absl::StatusOr<Pass> Enter(int64_t bytes);

  /// Runs `task` soon, on another thread. The caller holds a pass and has no other task under way.
  /// Unavailable: stopped.
  absl::Status Run(std::function<void()> task) { return threads_.Submit(std::move(task)); }

  /// Lets nobody in any more.
  void Close() { closed_ = true; }

  /// Runs what waits, joins the threads.
  void Stop() { threads_.Stop(); }

  int64_t calls() const { return calls_.load(std::memory_order_relaxed); }
  int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  int64_t queued() const { return static_cast<int64_t>(threads_.queued()); }
  int64_t rejected_calls() const { return rejected_calls_.load(std::memory_order_relaxed); }
  int64_t rejected_bytes() const { return rejected_bytes_.load(std::memory_order_relaxed); }

 private:
  const AdmissionLimits limits_;
  std::atomic<bool> closed_{false};
  std::atomic<int64_t> calls_{0};
  std::atomic<int64_t> bytes_{0};
  std::atomic<int64_t> rejected_calls_{0};
  std::atomic<int64_t> rejected_bytes_{0};
  ThreadPool threads_;
};

}  // namespace fusion
