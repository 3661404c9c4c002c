#pragma once

namespace fusion {

/// The value of a hex digit as we write them, in small letters; -1 for any other sign.
inline int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace fusion
