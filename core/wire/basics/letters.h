#pragma once

#include <absl/strings/ascii.h>

namespace fusion {

/// Of ASCII: names of rules and constants have no others.
inline bool IsLetter(char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)); }
inline bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

}  // namespace fusion
