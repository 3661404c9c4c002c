#include "client/calls/retry.h"

#include <algorithm>
#include <cmath>

#include "core/wire/error_details.h"

namespace fusion {

std::optional<Nanoseconds> RetryPause(const RetryPolicy& policy, int attempts_made,
                                      const absl::Status& status, double random) {
  if (attempts_made >= policy.attempts) return std::nullopt;
  const std::optional<Nanoseconds> asked = RetryAfterOf(status);
  if (absl::IsResourceExhausted(status)) {
    if (!asked) return std::nullopt;
    // Spreads callers that were refused at the same time.
    return *asked + std::chrono::duration_cast<Nanoseconds>(policy.first_pause * random);
  }
  const bool again =
      absl::IsUnavailable(status) || absl::IsDataLoss(status) || absl::IsDeadlineExceeded(status);
  if (!again) return std::nullopt;
  const auto most = static_cast<double>(policy.most_pause.count());
  const double grown = static_cast<double>(policy.first_pause.count()) *
                       std::pow(policy.growth, std::max(0, attempts_made - 1));
  const double pause = std::min(grown, most) * (1 - policy.jitter * random);
  return std::max(Nanoseconds(static_cast<int64_t>(pause)), asked.value_or(Nanoseconds(0)));
}

absl::Status WithRetries(const RetryPolicy& policy, const RetryTime& time,
                         const std::function<absl::Status()>& attempt,
                         const std::function<void()>& before_retry) {
  for (int made = 1;; ++made) {
    absl::Status status = attempt();
    if (status.ok()) return status;
    const std::optional<Nanoseconds> pause = RetryPause(policy, made, status, time.random());
    if (!pause || *pause >= time.until - time.clock.Now()) return status;
    if (!time.wait(*pause)) return Cancelled("the caller gave up; before: ", Message(status));
    before_retry();
  }
}

}  // namespace fusion
