#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fusion {

// Rounded numbers with units, for people.

std::string HumanMicroseconds(double us);  // "812 us", "12.3 ms", "1.52 s"
std::string HumanMilliseconds(double ms);
std::string HumanFlops(double flops);      // "1.81 Gflop"
std::string HumanPercent(double part);     // 0.774 -> "77.4 %"
std::string HumanAge(double seconds);      // "42 s", "3 min", "5 h", "12 d"
std::string HumanRate(double per_second);  // "0.4", "123"
std::string ShortNumber(double value);     // "1.2e-06", "0.775"

/// `n` with the noun in singular or plural: "9 kernels", "1 kernel".
std::string Count(int64_t n, std::string_view noun);

}  // namespace fusion
