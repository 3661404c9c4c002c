#pragma once

#include <string>
#include <string_view>

namespace fusion {

/// `text` for people: floats in hex digits (HexDouble), as texts that are read back have them, in
/// the shortest decimal form that is the same number. "max 0x1.8p+1" becomes "max 3". Quoted parts,
/// which are names, stay.
std::string DecimalNumbers(std::string_view text);

}  // namespace fusion
