#include "core/base/text/cells.h"

#include <algorithm>
#include <cwchar>

#include "core/base/text/text.h"
#include "core/base/text/utf8.h"

namespace fusion {
namespace {

locale_t Utf8() {
  static const locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);  // never freed
  return utf8;
}

// Cells of the first character of `text`; sets `*bytes` to its length. Needs a Utf8Locale.
size_t FirstCells(std::string_view text, size_t* bytes) {
  const Utf8Character c = FirstCharacter(text);
  *bytes = std::max<size_t>(c.bytes, 1);
  const int cells = c.bytes == 0 ? 1 : wcwidth(static_cast<wchar_t>(c.code));
  return cells < 0 ? 1 : static_cast<size_t>(cells);
}

}  // namespace

Utf8Locale::Utf8Locale() : outer_(uselocale(Utf8())) {}
Utf8Locale::~Utf8Locale() { uselocale(outer_); }

size_t CellsOf(std::string_view line) {
  const Utf8Locale utf8;
  size_t cells = 0;
  while (!line.empty()) {
    const bool colour = line.starts_with("\x1b[");
    const size_t end = colour ? line.find('m') : std::string_view::npos;
    size_t bytes = end + 1;
    if (end == std::string_view::npos) cells += FirstCells(line, &bytes);
    line.remove_prefix(bytes);
  }
  return cells;
}

std::string CutToCells(std::string_view line, size_t most) {
  constexpr std::string_view kCut = "...";
  const size_t all = CellsOf(line);
  if (all <= most) return std::string(line);
  const size_t kept = most - std::min(most, kCut.size());
  const size_t head = kept - kept / 2;
  const Utf8Locale utf8;
  std::string begin;
  std::string_view rest = line;
  size_t bytes = 0;
  size_t before = 0;  // cells
  while (!rest.empty() && before + FirstCells(rest, &bytes) <= head) {
    before += FirstCells(rest, &bytes);
    begin += rest.substr(0, bytes);
    rest.remove_prefix(bytes);
  }
  for (size_t at = before; !rest.empty() && all - at > kept / 2;) {
    at += FirstCells(rest, &bytes);
    rest.remove_prefix(bytes);
  }
  return StrCat(begin, kCut.substr(0, most), rest);
}

}  // namespace fusion
