#include "server/admission/tenant_limits.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "core/base/text/text.h"

namespace fusion {
namespace {

absl::StatusOr<double> Number(std::string_view text, std::string_view what) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && std::isfinite(value) &&
      value > 0) {
    return value;
  }
  return InvalidArgument(what, ": ", QuoteShort(text), "; expected a number above 0");
}

absl::StatusOr<int64_t> Bytes(std::string_view text, std::string_view what) {
  constexpr std::array<std::pair<std::string_view, int>, 4> kUnits = {
      {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}}};
  int shift = 0;
  std::string_view digits = text;
  for (const auto& [unit, bits] : kUnits) {
    if (!digits.ends_with(unit)) continue;
    digits.remove_suffix(unit.size());
    shift = bits;
    break;
  }
  int64_t value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc() && end == digits.data() + digits.size() && value > 0 &&
      value <= (INT64_MAX >> shift)) {
    return value << shift;
  }
  return InvalidArgument(what, ": ", QuoteShort(text),
                         "; expected bytes, or a number with KiB, MiB, GiB or TiB");
}

}  // namespace

double TenantLimit::Burst() const {
  return burst > 0 ? burst : std::max(1.0, 2 * calls_per_second);
}

bool TenantLimits::BoundsStores() const {
  return others.stored_bytes > 0 ||
         std::any_of(by_name.begin(), by_name.end(),
                     [](const auto& entry) { return entry.second.stored_bytes > 0; });
}

absl::Status ParseTenantLimit(std::string_view text, TenantLimits* limits) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0) {
    return InvalidArgument(QuoteShort(text),
                           "; expected TENANT:rate=CALLS_PER_SECOND,burst=CALLS,stored=BYTES");
  }
  const std::string name(text.substr(0, colon));
  TenantLimit limit;
  for (std::string_view part : StrSplit(text.substr(colon + 1), ',')) {
    const size_t equals = part.find('=');
    const std::string_view key = part.substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : part.substr(equals + 1);
    if (key == "rate") {
      ASSIGN_OR_RETURN(limit.calls_per_second, Number(value, key));
    } else if (key == "burst") {
      ASSIGN_OR_RETURN(limit.burst, Number(value, key));
    } else if (key == "stored") {
      ASSIGN_OR_RETURN(limit.stored_bytes, Bytes(value, key));
    } else {
      return InvalidArgument(QuoteShort(key), "; expected rate, burst or stored");
    }
  }
  if (limit.burst > 0 && limit.burst < 1) {
    return InvalidArgument("burst: ", limit.burst, "; expected at least 1");
  }
  if (limit.burst > 0 && limit.calls_per_second == 0) {
    return InvalidArgument("burst: means nothing without rate");
  }
  if (name == "*") {
    limits->others = limit;
  } else if (!limits->by_name.emplace(name, limit).second) {
    return InvalidArgument("tenant ", QuoteShort(name), " has two limits");
  }
  return absl::OkStatus();
}

}  // namespace fusion
