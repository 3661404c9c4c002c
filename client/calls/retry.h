#pragma once

#include <functional>
#include <optional>

#include "core/base/clock.h"
#include "core/base/status.h"

namespace fusion {

/// How often and when a call is made again. For ResilientClient, which makes retries itself: the
/// channel below makes none then, so the two do not multiply.
struct RetryPolicy {
  int attempts = 4;  // the first included
  Nanoseconds first_pause = std::chrono::milliseconds(100);
  double growth = 2;
  Nanoseconds most_pause = std::chrono::seconds(2);
  /// Pauses are this part shorter at most, at random.
  double jitter = 0.5;
};

/// The pause before attempt `attempts_made` + 1 of a call that ended with `status`; nullopt if it
/// must not be made again. `random`: in [0, 1).
/// - Unavailable, DataLoss, and DeadlineExceeded of one attempt: growing pauses; at least as long
/// as
///   the service asks for, if it does (RetryAfterOf).
/// - ResourceExhausted: what the service asks for, and never unasked.
/// - Everything else would be answered the same again.
std::optional<Nanoseconds> RetryPause(const RetryPolicy& policy, int attempts_made,
                                      const absl::Status& status, double random);

/// What retries need of the world.
struct RetryTime {
  const Clock& clock;
  Nanoseconds until{0};  // of `clock`
  /// False if the caller gives up meanwhile.
  std::function<bool(Nanoseconds)> wait;
  std::function<double()> random;
};

/// Makes `attempt` until it is OK, must not be made again, or the next one could not begin before
/// `time.until`. The last attempt's status; Cancelled if the caller gave up in a pause.
/// `before_retry` is told of each one but the first.
absl::Status WithRetries(const RetryPolicy& policy, const RetryTime& time,
                         const std::function<absl::Status()>& attempt,
                         const std::function<void()>& before_retry);

}  // namespace fusion
