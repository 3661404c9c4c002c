#pragma once

#include <absl/strings/ascii.h>

namespace fusion {

/// ASCII letters and digits, the only ones in names of rules and constants.
inline bool IsLetter(char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)); }
inline bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

}  // namespace fusion
