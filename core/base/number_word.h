#pragma once

#include <string>

namespace fusion {

/// For options whose value is a number: why `word` is none, where it is NaN, which is in every
/// range; else empty.
std::string IsANumber(const std::string& word);

}  // namespace fusion
