#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "core/base/cancel.h"
#include "core/base/mutex.h"
#include "core/base/result_cell.h"
#include "core/base/task_executor.h"

namespace fusion {

/// Lets N equal requests share one execution.
///
///   SingleFlight<Digest, StoredPlan> flights(pool);
///   auto plan = flights.Run(key, request_cancel, [=] { return BuildPlan(graph); });
///
/// The first caller of a key starts `work` on the executor; whoever comes before it ends waits for
/// the same result. A waiter that is cancelled or runs out of time leaves alone: the work goes on
/// and its result is there for the next caller's cache. What `work` captures must therefore live as
/// long as the executor runs it, not as long as one caller. Thread-safe; the executor outlives it.
template <typename Key, typename Value>
class SingleFlight {
 public:
  using Result = absl::StatusOr<std::shared_ptr<const Value>>;
  using Work = std::function<Result()>;

  explicit SingleFlight(TaskExecutor& executor)
      : executor_(executor), state_(std::make_shared<State>()) {}

  /// The result of `work` or of the equal work that is under way. kCancelled or kDeadlineExceeded
  /// if `waiter` ends first; ResourceExhausted or Unavailable if the executor refuses the work.
  /// `shared` (may be null) tells whether someone else had started it. Calls `meanwhile` (may be
  /// empty) on this thread now and then while it waits.
  Result Run(const Key& key, const CancelToken& waiter, Work work, bool* shared = nullptr,
             const std::function<void()>& meanwhile = nullptr) {
    auto [flight, first] = Join(key);
    if (shared != nullptr) *shared = !first;
    if (first) {
      Start(key, flight, std::move(work));
    } else {
      state_->shared_total.fetch_add(1, std::memory_order_relaxed);
    }
    return Wait(*flight, waiter, meanwhile);
  }

  /// Callers waiting now; callers that found equal work under way, since the start.
  int64_t waiters() const { return state_->waiters.load(std::memory_order_relaxed); }
  int64_t shared_total() const { return state_->shared_total.load(std::memory_order_relaxed); }

 private:
  using Flight = ResultCell<std::shared_ptr<const Value>>;

  // Outlives the SingleFlight if work is still running then.
  struct State {
    Mutex mutex;
    std::map<Key, std::shared_ptr<Flight>> flights ABSL_GUARDED_BY(mutex);
    std::atomic<int64_t> waiters{0};
    std::atomic<int64_t> shared_total{0};
  };

  // Ends one flight exactly once: with the result of its work, or, when the executor drops the task
  // without running it, from the destructor.
  class Landing {
   public:
    Landing(std::shared_ptr<State> state, Key key, std::shared_ptr<Flight> flight)
        : state_(std::move(state)), key_(std::move(key)), flight_(std::move(flight)) {}
    ~Landing() { Land(Unavailable("the work was dropped before it ran")); }
    Landing(const Landing&) = delete;
    Landing& operator=(const Landing&) = delete;

    void Land(Result result) {
      if (landed_) return;
      landed_ = true;
      {
        // First out of the map: a caller that comes now starts anew (or finds the cache filled).
        MutexLock lock(&state_->mutex);
        state_->flights.erase(key_);
      }
      flight_->Set(std::move(result));
    }

   private:
    std::shared_ptr<State> state_;
    Key key_;
    std::shared_ptr<Flight> flight_;
    bool landed_ = false;
  };

  std::pair<std::shared_ptr<Flight>, bool> Join(const Key& key) {
    MutexLock lock(&state_->mutex);
    std::shared_ptr<Flight>& flight = state_->flights[key];
    bool first = flight == nullptr;
    if (first) flight = std::make_shared<Flight>();
    return {flight, first};
  }

  void Start(const Key& key, const std::shared_ptr<Flight>& flight, Work work) {
    auto landing = std::make_shared<Landing>(state_, key, flight);
    absl::Status accepted =
        executor_.Submit([landing, work = std::move(work)] { landing->Land(work()); });
    if (!accepted.ok()) landing->Land(accepted);
  }

  Result Wait(Flight& flight, const CancelToken& waiter, const std::function<void()>& meanwhile) {
    state_->waiters.fetch_add(1, std::memory_order_relaxed);
    Result result = flight.Wait(waiter, meanwhile);
    state_->waiters.fetch_sub(1, std::memory_order_relaxed);
    return result;
  }

  TaskExecutor& executor_;
  const std::shared_ptr<State> state_;
};

}  // namespace fusion
