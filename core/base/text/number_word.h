#pragma once

#include <string>

namespace fusion {

/// An error message if `word`, the value of a numeric option, is NaN; else empty. The range checks
/// of CLI11 accept NaN; they reject all other words that are not numbers.
std::string NumberError(const std::string& word);

}  // namespace fusion
