#include "core/base/text/decimal_numbers.h"

#include <cctype>
#include <cstdlib>

#include "core/base/text/text.h"

namespace fusion {
namespace {

bool IsWordCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// Length of the hex float at the start of `text`, including a suffix 'f'; 0 if there is none.
// Integers and addresses have no exponent, so they are no hex floats.
size_t LengthOf(std::string_view text) {
  size_t i = 2;
  auto digits = [&](auto is_digit) {
    const size_t begin = i;
    while (i < text.size() && is_digit(static_cast<unsigned char>(text[i])) != 0) ++i;
    return i - begin;
  };
  if (!text.starts_with("0x") || digits(isxdigit) == 0) return 0;
  if (i < text.size() && text[i] == '.') {
    ++i;
    digits(isxdigit);
  }
  if (i >= text.size() || text[i] != 'p') return 0;
  ++i;
  if (i < text.size() && (text[i] == '+' || text[i] == '-')) ++i;
  if (digits(isdigit) == 0) return 0;
  if (i < text.size() && text[i] == 'f') ++i;
  return i < text.size() && IsWordCharacter(text[i]) ? 0 : i;
}

}  // namespace

std::string DecimalNumbers(std::string_view text) {
  std::string out;
  bool quoted = false;
  for (size_t i = 0; i < text.size();) {
    if (text[i] == '"') quoted = !quoted;
    if (quoted) {
      const size_t length = text[i] == '\\' ? 2 : 1;
      out += text.substr(i, length);
      i += length;
      continue;
    }
    const bool begins = i == 0 || !IsWordCharacter(text[i - 1]);
    const size_t length = begins ? LengthOf(text.substr(i)) : 0;
    if (length == 0) {
      out += text[i++];
      continue;
    }
    StrAppend(&out, std::strtod(std::string(text.substr(i, length)).c_str(), nullptr));
    i += length;
  }
  return out;
}

}  // namespace fusion
