#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace fusion {

/// Parses "2027-01-31" (midnight) or "2027-01-31T18:00:00Z", both UTC, from 1970 on.
/// InvalidArgument, naming the expected form, for anything else.
absl::StatusOr<std::chrono::system_clock::time_point> ParseUtcTime(std::string_view text);

/// "2027-01-31T18:00:00Z".
std::string UtcTimeText(std::chrono::system_clock::time_point time);

}  // namespace fusion
