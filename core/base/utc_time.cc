#include "core/base/utc_time.h"

#include <ctime>

#include "core/base/text/text.h"

namespace fusion {

absl::StatusOr<std::chrono::system_clock::time_point> ParseUtcTime(std::string_view text) {
  const std::string copy(text);
  for (const char* format : {"%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d"}) {
    std::tm parts{};
    const char* end = strptime(copy.c_str(), format, &parts);
    if (end != copy.c_str() + copy.size()) continue;
    const std::tm asked = parts;
    const std::time_t seconds = timegm(&parts);
    // timegm turns the 30th of February into the 2nd of March.
    if (parts.tm_mday != asked.tm_mday || seconds < 0) continue;
    return std::chrono::system_clock::from_time_t(seconds);
  }
  return InvalidArgument(QuoteShort(text),
                         "; expected a time in UTC, 2027-01-31 or 2027-01-31T18:00:00Z");
}

std::string UtcTimeText(std::chrono::system_clock::time_point time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

}  // namespace fusion
