#include "core/base/text/wrapped_text.h"

#include <algorithm>

#include "core/base/text/cells.h"
#include "core/base/text/text.h"

namespace fusion {
namespace {

void WrapLine(std::string_view line, size_t columns, size_t rest_at, std::string* out) {
  const size_t indent = std::min(line.find_first_not_of(' '), line.size());
  const size_t begin = rest_at == kTwoDeeper ? indent + 2 : rest_at;
  const std::string further(std::min(begin, columns / 2), ' ');
  size_t used = 0;
  bool first = true;
  while (!line.empty()) {
    // The spaces before a word, and the word.
    const size_t word = line.find_first_not_of(' ');
    if (word == std::string_view::npos) return;
    const size_t end = std::min(line.find(' ', word), line.size());
    const bool breaks = !first && used + CellsOf(line.substr(0, end)) > columns;
    if (breaks) {
      *out += StrCat("\n", further);
      used = further.size();
    }
    const std::string_view part = line.substr(breaks ? word : 0, breaks ? end - word : end);
    *out += part;
    used += CellsOf(part);
    first = false;
    line.remove_prefix(end);
  }
}

}  // namespace

std::string Wrapped(std::string_view text, size_t columns, size_t rest_at) {
  if (columns == 0) return std::string(text);
  std::string out;
  bool first = true;
  for (std::string_view line : StrSplit(text, '\n')) {
    if (!first) out += '\n';
    first = false;
    if (CellsOf(line) <= columns) {
      out += line;
    } else {
      WrapLine(line, columns, rest_at, &out);
    }
  }
  return out;
}

}  // namespace fusion
