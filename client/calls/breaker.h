#pragma once

#include <functional>
#include <optional>

#include "core/base/status.h"
#include "core/base/threads/mutex.h"

namespace fusion {

struct BreakerOptions {
  /// Calls in a row that found nobody, or had no answer in time, before the circuit opens. 0:
  /// never.
  int failures = 3;
  /// From opening to the one call that looks whether the service is back; doubles while it is not.
  Nanoseconds pause = std::chrono::seconds(1);
  Nanoseconds most_pause = std::chrono::seconds(30);
  /// Pauses are longer by a random part of this, so that clients do not come back all at once.
  double jitter = 0.2;
};

enum class BreakerPhase : uint8_t {
  kClosed,  // calls go through
  kOpen,    // calls fail at once
  kProbe,   // one call looks; others fail at once
};
/// "closed", "open", "probe".
std::string_view BreakerPhaseName(BreakerPhase phase);

/// A circuit at one moment, for people and metrics.
struct BreakerState {
  BreakerPhase phase = BreakerPhase::kClosed;
  int failures = 0;           // in a row
  int64_t opened = 0;         // times, ever
  Nanoseconds open_since{0};  // Unix time; 0: it is closed
  Nanoseconds probe_in{0};    // kOpen: until a call goes through
  std::string last_failure;   // empty: none yet
};

/// Keeps calls from a service that is away, so that whoever can go on without it does so at once.
///
///   RETURN_IF_ERROR(breaker.Admit());
///   absl::Status status = call();
///   breaker.Record(status);          // exactly once for each call that was admitted
///
/// Thread-safe; nothing blocks.
class CircuitBreaker {
 public:
  /// `clock` outlives it; `random` gives numbers in [0, 1), and is called by one thread at a time.
  explicit CircuitBreaker(
      const BreakerOptions& options, const Clock& clock = Clock::Real(),
      std::function<double()> random = [] { return 0.5; });

  /// Unavailable, "circuit open since ... ms, after ...", if calls do not go through.
  absl::Status Admit();
  /// The outcome of an admitted call. Unavailable and DeadlineExceeded are failures, Cancelled says
  /// nothing, and every other answer says that somebody is there. A deadline may have been too
  /// short for an answer: who knows so says OK or Cancelled.
  void Record(const absl::Status& status);

  BreakerState state() const;

 private:
  void Open() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const BreakerOptions options_;
  const Clock& clock_;
  mutable Mutex mutex_;
  const std::function<double()> random_ ABSL_GUARDED_BY(mutex_);
  BreakerState state_ ABSL_GUARDED_BY(mutex_);
  Nanoseconds pause_ ABSL_GUARDED_BY(mutex_){0};      // the next one, without jitter
  Nanoseconds opened_at_ ABSL_GUARDED_BY(mutex_){0};  // by Now, the first time since it was closed
  Nanoseconds probe_at_ ABSL_GUARDED_BY(mutex_){0};
};

}  // namespace fusion
