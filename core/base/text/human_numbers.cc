#include "core/base/text/human_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/text/text.h"

namespace fusion {

std::string HumanMicroseconds(double us) {
  double size = std::fabs(us);
  if (size < 99.95) return fmt::format("{:.1f} us", us);
  if (size < 999.5) return fmt::format("{:.0f} us", us);
  if (size < 9995) return fmt::format("{:.2f} ms", us / 1e3);
  if (size < 99950) return fmt::format("{:.1f} ms", us / 1e3);
  if (size < 999500) return fmt::format("{:.0f} ms", us / 1e3);
  return fmt::format("{:.2f} s", us / 1e6);
}

std::string HumanMilliseconds(double ms) { return HumanMicroseconds(ms * 1e3); }

std::string HumanFlops(double flops) {
  if (flops < 999.5) return fmt::format("{:.0f} flop", flops);
  if (flops < 999.5e3) return fmt::format("{:.3g} kflop", flops / 1e3);
  if (flops < 999.5e6) return fmt::format("{:.3g} Mflop", flops / 1e6);
  return fmt::format("{:.3g} Gflop", flops / 1e9);
}

std::string HumanPercent(double part) { return fmt::format("{:.1f} %", part * 100); }

std::string HumanAge(double seconds) {
  seconds = std::max(seconds, 0.0);  // clocks of two machines differ
  if (seconds < 60) return fmt::format("{:.0f} s", std::floor(seconds));
  if (seconds < 3600) return fmt::format("{:.0f} min", std::floor(seconds / 60));
  if (seconds < 2 * 86400) return fmt::format("{:.0f} h", std::floor(seconds / 3600));
  return fmt::format("{:.0f} d", std::floor(seconds / 86400));
}

std::string HumanRate(double per_second) {
  return per_second >= 99.95 ? fmt::format("{:.0f}", per_second)
                             : fmt::format("{:.1f}", per_second);
}

std::string ShortNumber(double value) {
  if (value == 0) return "0";
  double size = std::fabs(value);
  return size < 1e-3 || size >= 1e6 ? fmt::format("{:.1e}", value) : fmt::format("{:.4g}", value);
}

std::string Count(int64_t n, std::string_view noun) {
  return StrCat(n, " ", noun, n == 1 ? "" : "s");
}

}  // namespace fusion
