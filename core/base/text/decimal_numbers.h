#pragma once

#include <string>
#include <string_view>

namespace fusion {

/// A copy of `text` for people: replaces hex floats (HexDouble, the form of texts that are parsed
/// again) by the shortest decimal form of the same number. "max 0x1.8p+1" becomes "max 3". Quoted
/// parts are names and stay unchanged.
std::string DecimalNumbers(std::string_view text);

}  // namespace fusion
