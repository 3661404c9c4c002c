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

/// Lets concurrent equal requests share one execution.
///
///   SingleFlight<Digest, StoredPlan> flights(pool);
///   auto plan = flights.Run(key, request_cancel, [=](Interest&) { return BuildPlan(graph); });
///
/// The first caller of a key starts `work` on the executor. Callers with the same key that arrive
/// before it ends wait for the same result.
///
/// A waiter that is cancelled or times out returns alone; the work continues for the others. If all
/// waiters have left for Options::linger, the interest is lost, and the work may stop early. If all
/// have left before it starts, it is not started. With the default linger neither happens.
/// Caller::goes_on prevents both too. If the executor is full, queued work may be displaced by that
/// of another tenant, even with `goes_on`, unless a tenant other than the first caller's waits for
/// it.
///
/// `work` may outlive all callers, and this object. So what it captures must live as long as the
/// executor runs it. Executor and clock must outlive this object and all work. Thread-safe.
template <typename Key, typename Value>
class SingleFlight {
 public:
  using Result = absl::StatusOr<std::shared_ptr<const Value>>;
  /// `interest`: that of the waiters. Once it is lost, the result is discarded.
  using Work = std::function<Result(Interest& interest)>;

  struct Options {
    /// Grace period before work without waiters may stop.
    Nanoseconds linger = Interest::kForEver;
  };

  explicit SingleFlight(TaskExecutor& executor, const Options& options = {},
                        const Clock& clock = Clock::Real())
      : executor_(executor), options_(options), clock_(clock), state_(std::make_shared<State>()) {}

  struct Caller {
    WorkOwner owner;
    bool* shared = nullptr;  // set to whether another caller had started the work
    std::function<void()> meanwhile = nullptr;  // called on the waiting thread periodically
    bool goes_on = false;  // the work must be completed even if all callers leave
  };

  /// Returns the result of `work`, or of the work in progress for `key`; an error of the work is
  /// returned to all waiters. kCancelled or kDeadlineExceeded if `waiter` ends first.
  /// ResourceExhausted or Unavailable if the executor rejects, displaces or drops the work.
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

  /// The number of callers that wait now, and the total number that joined work in progress.
  int64_t waiters() const { return state_->waiters.load(std::memory_order_relaxed); }
  int64_t shared_total() const { return state_->shared_total.load(std::memory_order_relaxed); }

 private:
  struct Flight {
    Flight(const Clock& clock, Nanoseconds linger) : interest(clock, linger) {}
    Interest interest;
    ResultCell<std::shared_ptr<const Value>> result;
  };

  // Outlives the SingleFlight if work is still running.
  struct State {
    Mutex mutex;
    std::map<Key, std::shared_ptr<Flight>> flights ABSL_GUARDED_BY(mutex);
    std::atomic<int64_t> waiters{0};
    std::atomic<int64_t> shared_total{0};
  };

  // Completes a flight exactly once: with the result of its work, or in the destructor, if the
  // executor drops the task without running it.
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
        // Remove it from the map first: later callers start new work (or find the cache filled).
        // An abandoned flight may have been replaced by another one.
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

  // Registers the caller's interest. True: the flight is new and must be started.
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

  // Work that another tenant waits for too must not be displaced.
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
