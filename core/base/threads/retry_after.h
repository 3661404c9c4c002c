#pragma once

#include <optional>

#include "core/base/clock.h"
#include "core/base/status.h"

namespace fusion {

/// Payload of an error that goes away by waiting: nanoseconds to wait at least, in decimal.
inline constexpr char kRetryAfter[] = "fusion.v1/retry_after";

/// `status`, which is not OK, with that payload.
///
///   return WithRetryAfter(ResourceExhausted("the queue is full"), std::chrono::seconds(2));
absl::Status WithRetryAfter(absl::Status status, Nanoseconds delay);
/// How long a caller waits at least whom a full queue refused. Chosen: work takes from milliseconds
/// to a minute, and callers whose turn it is not yet come again, later each time.
inline constexpr Nanoseconds kFullQueueRetry = std::chrono::seconds(1);
/// ResourceExhausted, "server is busy: ...; try again later", with that delay.
template <typename... Parts>
absl::Status ServerBusy(const Parts&... parts) {
  return WithRetryAfter(ResourceExhausted("server is busy: ", parts..., "; try again later"),
                        kFullQueueRetry);
}

/// What it says; nullopt if it says nothing, or nonsense. Never negative.
std::optional<Nanoseconds> RetryAfterOf(const absl::Status& status);

}  // namespace fusion
