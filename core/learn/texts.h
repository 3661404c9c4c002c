#pragma once

#include <string>

namespace fusion {

// Numbers in reasons, for people.

/// "12.3 us".
std::string UsText(double us);
/// 0.123: "12.3 %".
std::string PercentText(double fraction);

}  // namespace fusion
