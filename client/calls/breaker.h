#pragma once

#include <functional>
#include <optional>

#include "core/base/status.h"
#include "core/base/threads/mutex.h"

namespace fusion {

struct BreakerOptions {
  /// Consecutive calls without a connection or an answer in time that open the circuit. 0: it never
  /// opens.
  int failures = 3;
  /// Time from opening to the probing call; doubles after each failed probe, up to most_pause.
  Nanoseconds pause = std::chrono::seconds(1);
  Nanoseconds most_pause = std::chrono::seconds(30);
  /// Pauses are extended by a random part of up to this, so that clients do not all return at once.
  double jitter = 0.2;
};

enum class BreakerPhase : uint8_t {
  kClosed,  // calls go through
  kOpen,    // calls fail at once
  kProbe,   // one call probes; others fail at once
};
/// "closed", "open", "probe".
std::string_view BreakerPhaseName(BreakerPhase phase);

/// A snapshot of a circuit, for display and metrics.
struct BreakerState {
  BreakerPhase phase = BreakerPhase::kClosed;
  int failures = 0;           // consecutive
  int64_t opened = 0;         // number of times so far
  Nanoseconds open_since{0};  // Unix time; 0: closed
  Nanoseconds probe_in{0};    // kOpen: until the next probe
  std::string last_failure;   // message; empty: none yet
};

/// A circuit breaker: calls to an unavailable service fail at once, so that callers can use an
/// alternative.
///
///   RETURN_IF_ERROR(breaker.Admit());
///   absl::Status status = call();
///   breaker.Record(status);          // exactly once for each call that was admitted
///
/// Thread-safe; nothing blocks.
class CircuitBreaker {
 public:
  /// `clock` outlives it; `random` returns numbers in [0, 1), and is called by one thread at a
  /// time.
  explicit CircuitBreaker(
      const BreakerOptions& options, const Clock& clock = Clock::Real(),
      std::function<double()> random = [] { return 0.5; });

  /// Unavailable, "circuit open since ... ms, after ...", if the circuit is open.
  absl::Status Admit();
  /// Records the outcome of an admitted call. Unavailable and DeadlineExceeded are failures;
  /// Cancelled is ignored, and the next call probes again; any other status shows that the service
  /// responds. A caller who knows that the deadline was too short for an answer passes OK or
  /// Cancelled.
  void Record(const absl::Status& status);

  BreakerState state() const;

 private:
  void Open() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const BreakerOptions options_;
  const Clock& clock_;
  mutable Mutex mutex_;
  const std::function<double()> random_ ABSL_GUARDED_BY(mutex_);
  BreakerState state_ ABSL_GUARDED_BY(mutex_);
  Nanoseconds pause_ ABSL_GUARDED_BY(mutex_){0};      // the next pause, without jitter
  Nanoseconds opened_at_ ABSL_GUARDED_BY(mutex_){0};  // by Now, of the first opening since closed
  Nanoseconds probe_at_ ABSL_GUARDED_BY(mutex_){0};
};

}  // namespace fusion
