#pragma once

#include <clocale>
#include <cstddef>
#include <string>
#include <string_view>

namespace fusion {

/// Cells that one line takes on a terminal: wide characters two, marks that combine none, and
/// colours ("\x1b[1m") none.
size_t CellsOf(std::string_view line);

/// `line` in at most `most` cells: what is longer loses its middle, where "..." stands then. `line`
/// has no colours.
std::string CutToCells(std::string_view line, size_t most);

/// While it lives, functions of C take text of this thread for UTF-8.
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
