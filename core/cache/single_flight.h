#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "core/base/threads/cancel.h"
#include "core/base/threads/interest.h"
#include "core/base/threads/mutex.h"
#include "core/base/threads/result_cell.h"
#include "core/base/threads/retry_after.h"
#include "core/base/threads/task_executor.h"

namespace fusion {

/// Lets N equal requests share one execution.
///
///   SingleFlight<Digest, StoredPlan> flights(pool);
///   auto plan = flights.Run(key, request_cancel, [=](Interest&) { return BuildPlan(graph); });
///
/// The first caller of a key starts `work` on the executor; whoever comes before it ends waits for
/// the same result. Where the executor is full, work that nobody of another tenant than its first
/// caller's wants may lose its place, even if it is to go on. A waiter that is cancelled or runs
/// out of time leaves alone: the work goes on and its result is there for the next caller's cache.
/// Only when all have left, and nobody has come back for a while (Interest), may the work end
/// itself; work that has not begun when all have left never does. What `work` captures must
/// therefore live as long as the executor runs it, not as long as one caller. Thread-safe; executor
/// and clock outlive it, and the work that they run.
template <typename Key, typename Value>
class SingleFlight {
 public:
  using Result = absl::StatusOr<std::shared_ptr<const Value>>;
  /// Gets the interest of its waiters; once that is lost nobody reads the result.
  using Work = std::function<Result(Interest& interest)>;

  struct Options {
    /// How long work that nobody waits for goes on.
    Nanoseconds linger = Interest::kForEver;
  };

  explicit SingleFlight(TaskExecutor& executor, const Options& options = {},
                        const Clock& clock = Clock::Real())
      : executor_(executor), options_(options), clock_(clock), state_(std::make_shared<State>()) {}

  struct Caller {
    WorkOwner owner;
    bool* shared = nullptr;                     // tells whether someone else had started the work
    std::function<void()> meanwhile = nullptr;  // called on this thread now and then while it waits
    bool goes_on = false;                       // the work is to end also if this caller leaves
  };

  /// The result of `work` or of the equal work that is under way. kCancelled or kDeadlineExceeded
  /// if `waiter` ends first; ResourceExhausted or Unavailable if the executor refuses the work, or
  /// has it give its place to another owner's.
  Result Run(const Key& key, const CancelToken& waiter, Work work, const Caller& caller = {}) {
    auto [flight, first] = Join(key, caller.owner.tenant);
    if (caller.shared != nullptr) *caller.shared = !first;
    if (caller.goes_on) flight->interest.Keep();
    if (first) {
      Start(key, flight, std::move(work), caller.owner);
    } else {
      state_->shared_total.fetch_add(1, std::memory_order_relaxed);
    }
    return Wait(*flight, waiter, caller);
  }

  /// Callers waiting now; callers that found equal work under way, since the start.
  int64_t waiters() const { return state_->waiters.load(std::memory_order_relaxed); }
  int64_t shared_total() const { return state_->shared_total.load(std::memory_order_relaxed); }

 private:
  struct Flight {
    Flight(const Clock& clock, Nanoseconds linger) : interest(clock, linger) {}
    Interest interest;
    ResultCell<std::shared_ptr<const Value>> result;
  };

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
        // One that was given up may have another in its place.
        MutexLock lock(&state_->mutex);
        auto it = state_->flights.find(key_);
        if (it != state_->flights.end() && it->second == flight_) state_->flights.erase(it);
      }
      flight_->result.Set(std::move(result));
    }

   private:
    std::shared_ptr<State> state_;
    Key key_;
    std::shared_ptr<Flight> flight_;
    bool landed_ = false;
  };

  // Counts the caller as one that wants the flight.
  std::pair<std::shared_ptr<Flight>, bool> Join(const Key& key, const std::string& tenant) {
    MutexLock lock(&state_->mutex);
    std::shared_ptr<Flight>& flight = state_->flights[key];
    if (flight != nullptr && flight->interest.Join(tenant)) return {flight, false};
    flight = std::make_shared<Flight>(clock_, options_.linger);
    flight->interest.Join(tenant);
    return {flight, true};
  }

  void Start(const Key& key, const std::shared_ptr<Flight>& flight, Work work,
             const WorkOwner& owner) {
    auto landing = std::make_shared<Landing>(state_, key, flight);
    auto land = [landing, flight](const Work& make) {
      landing->Land(flight->interest.Begin() ? make(flight->interest)
                                             : Cancelled("nobody waits for it any more"));
    };
    absl::Status accepted = executor_.SubmitFor(
        owner,
        {.run = [land, work = std::move(work)] { land(work); },
         .displaced =
             [land] {
               land([](Interest&) {
                 return ServerBusy(
                     "the place of this work in the queue went to a tenant "
                     "with less of it");
               });
             },
         .standing = [flight,
                      tenant = owner.tenant] { return StandingOf(flight->interest, tenant); }});
    if (!accepted.ok()) landing->Land(accepted);
  }

  // What another tenant wants as well does not go with its owner's place.
  static TaskExecutor::Standing StandingOf(Interest& interest, const std::string& owner) {
    using Standing = TaskExecutor::Standing;
    if (!interest.Begin()) return Standing::kUnwanted;
    return interest.IsWantedBeside(owner) ? Standing::kStays : Standing::kMayGo;
  }

  Result Wait(Flight& flight, const CancelToken& waiter, const Caller& caller) {
    state_->waiters.fetch_add(1, std::memory_order_relaxed);
    Result result = flight.result.Wait(waiter, caller.meanwhile);
    state_->waiters.fetch_sub(1, std::memory_order_relaxed);
    flight.interest.Leave(caller.owner.tenant);
    return result;
  }

  TaskExecutor& executor_;
  const Options options_;
  const Clock& clock_;
  const std::shared_ptr<State> state_;
};

}  // namespace fusion
