#pragma once

#include <functional>
#include <optional>

#include "core/base/clock.h"
#include "core/base/status.h"

namespace fusion {

/// When and how often a call is retried. Used by ResilientClient, which makes retries itself: its
/// channels make none, so that retries do not multiply.
struct RetryPolicy {
  int attempts = 4;  // the first included
  Nanoseconds first_pause = std::chrono::milliseconds(100);
  double growth = 2;
  Nanoseconds most_pause = std::chrono::seconds(2);
  /// Pauses are shortened by a random part of up to this.
  double jitter = 0.5;
};

/// The pause before attempt `attempts_made` + 1 of a call that ended with `status`; nullopt: do not
/// retry. `random`: in [0, 1).
///
/// - Unavailable, DataLoss, and DeadlineExceeded of one attempt: growing pauses, at least as long
///   as the service asks for (RetryAfterOf).
/// - ResourceExhausted: the pause that the service asks for; without one, no retry.
/// - Other codes are not retried, because the answer would be the same.
std::optional<Nanoseconds> RetryPause(const RetryPolicy& policy, int attempts_made,
                                      const absl::Status& status, double random);

/// The clock and callbacks of WithRetries.
struct RetryTime {
  const Clock& clock;
  Nanoseconds until{0};  // of `clock`
  /// Waits; false if the caller gives up meanwhile.
  std::function<bool(Nanoseconds)> wait;
  std::function<double()> random;
};

/// Calls `attempt` until it returns OK, must not be retried, or the next attempt could not begin
/// before `time.until`. Returns the last status; Cancelled if the caller gave up during a pause.
/// Calls `before_retry` before each attempt but the first.
absl::Status WithRetries(const RetryPolicy& policy, const RetryTime& time,
                         const std::function<absl::Status()>& attempt,
                         const std::function<void()>& before_retry);

}  // namespace fusion
