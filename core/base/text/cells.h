#pragma once

#include <clocale>
#include <cstddef>
#include <string>
#include <string_view>

namespace fusion {

/// Columns ("cells") that one line of UTF-8 takes on a terminal. Wide characters count 2, combining
/// marks and colour escapes ("\x1b[1m") count 0.
size_t CellsOf(std::string_view line);

/// `line`, shortened to at most `most` cells: the middle of a longer line is replaced by "...".
/// `line` must have no colour escapes.
std::string CutToCells(std::string_view line, size_t most);

/// While an object of this class lives, the calling thread has the locale C.UTF-8 for character
/// functions of the C library, such as wcwidth.
class Utf8Locale {
 public:
  Utf8Locale();
  ~Utf8Locale();
  Utf8Locale(const Utf8Locale&) = delete;
  Utf8Locale& operator=(const Utf8Locale&) = delete;

 private:
  const locale_t outer_;
};

}  // namespace fusion
