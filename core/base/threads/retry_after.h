#pragma once

#include <optional>

#include "core/base/clock.h"
#include "core/base/status.h"

namespace fusion {

/// Payload of an error that a later retry may avoid: the minimum delay in nanoseconds, in decimal.
inline constexpr char kRetryAfter[] = "fusion.v1/retry_after";

/// `status`, which must not be OK, with that payload. A negative delay counts as 0.
///
///   return WithRetryAfter(ResourceExhausted("the queue is full"), std::chrono::seconds(2));
absl::Status WithRetryAfter(absl::Status status, Nanoseconds delay);
/// The minimum delay before a retry after a full queue. Chosen, not measured: work takes
/// milliseconds to a minute, and callers back off further with every retry.
inline constexpr Nanoseconds kFullQueueRetry = std::chrono::seconds(1);
/// ResourceExhausted, "server is busy: ...; try again later", with that delay.
template <typename... Parts>
absl::Status ServerBusy(const Parts&... parts) {
  return WithRetryAfter(ResourceExhausted("server is busy: ", parts..., "; try again later"),
                        kFullQueueRetry);
}

/// The delay in the payload of `status`, never negative; nullopt if there is none or it is
/// malformed.
std::optional<Nanoseconds> RetryAfterOf(const absl::Status& status);

}  // namespace fusion
