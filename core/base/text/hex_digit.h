#pragma once

namespace fusion {

/// The value of a hex digit, 0..15. Only lower-case letters count; -1 for any other character.
inline int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace fusion
