#include "core/base/threads/retry_after.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/cord.h"

namespace fusion {

absl::Status WithRetryAfter(absl::Status status, Nanoseconds delay) {
  status.SetPayload(kRetryAfter, absl::Cord(StrCat(std::max<int64_t>(0, delay.count()))));
  return status;
}

std::optional<Nanoseconds> RetryAfterOf(const absl::Status& status) {
  absl::optional<absl::Cord> payload = status.GetPayload(kRetryAfter);
  if (!payload.has_value()) return std::nullopt;
  const std::string text(*payload);
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return Nanoseconds(value);
}

}  // namespace fusion
