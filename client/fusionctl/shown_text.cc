#include "client/fusionctl/shown_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/base/text.h"

namespace fusion {
namespace {

constexpr std::string_view kReset = "\x1b[0m";
// What Bold, Good, Bad and tables begin and end with.
constexpr std::array<std::string_view, 6> kOwn = {kReset,     "\x1b[m",   "\x1b[1m",
                                                  "\x1b[31m", "\x1b[32m", "\x1b[0;1m"};

// The sequence of our own at the beginning of `text`; empty: there is none.
std::string_view OwnSequence(std::string_view text) {
  for (std::string_view own : kOwn) {
    if (text.starts_with(own)) return own;
  }
  return {};
}

/// One character of UTF-8.
struct Character {
  uint32_t code = 0;
  size_t bytes = 0;  // 0: the byte at hand is no beginning of one
};

// Overlong forms, surrogates and what is cut off are no characters.
Character FirstCharacter(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return {first, 1};
  const size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return {};
  uint32_t code = first & (0x7fU >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0) != 0x80) return {};
    code = code << 6 | (next & 0x3fU);
  }
  constexpr std::array<uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  return code < kLeast[bytes] || code > 0x10ffff || surrogate ? Character{}
                                                              : Character{code, bytes};
}

// Controls, and what turns the direction of the text around it or hides in it.
bool ActsOnTerminal(uint32_t code) {
  const bool control = code < 0x20 || (code >= 0x7f && code <= 0x9f);
  const bool line = code == 0x2028 || code == 0x2029;
  const bool turns = code == 0x61c || code == 0x200e || code == 0x200f ||
                     (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return control || line || turns;
}

// Cells of a line: characters that are not in sequences of our own. Those that take two cells are
// few here, and a line that is a little too long is wrapped by the terminal.
size_t Cells(std::string_view text) {
  size_t cells = 0;
  while (!text.empty()) {
    const std::string_view own = OwnSequence(text);
    const size_t bytes = own.empty() ? std::max<size_t>(FirstCharacter(text).bytes, 1) : own.size();
    if (own.empty()) ++cells;
    text.remove_prefix(bytes);
  }
  return cells;
}

void WrapLine(std::string_view line, size_t columns, std::string* out) {
  const size_t indent = std::min(line.find_first_not_of(' '), line.size());
  const std::string further(std::min(indent + 2, columns / 2), ' ');
  size_t used = 0;
  bool first = true;
  while (!line.empty()) {
    // The spaces before a word and the word.
    const size_t word = line.find_first_not_of(' ');
    if (word == std::string_view::npos) return;
    const size_t end = std::min(line.find(' ', word), line.size());
    const size_t cells = Cells(line.substr(0, end));
    if (!first && used + cells > columns) {
      *out += StrCat("\n", further);
      used = further.size();
      line.remove_prefix(word);
      const size_t rest = end - word;
      used += Cells(line.substr(0, rest));
      *out += line.substr(0, rest);
      line.remove_prefix(rest);
      continue;
    }
    *out += line.substr(0, end);
    used += cells;
    first = false;
    line.remove_prefix(end);
  }
}

// Letters that are other, more or less, or swapped with their neighbour (Damerau and Levenshtein).
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t other = a[i - 1] == b[j - 1] ? 0 : 1;
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + other});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string Shown(std::string_view text, bool own_colours) {
  std::string out;
  out.reserve(text.size());
  bool coloured = false;
  while (!text.empty()) {
    const std::string_view own = own_colours ? OwnSequence(text) : std::string_view();
    const Character c = FirstCharacter(text);
    size_t bytes = std::max<size_t>(c.bytes, 1);
    if (!own.empty()) {
      out += own;
      coloured = own != kReset && own != kOwn[1];
      bytes = own.size();
    } else if (c.bytes == 0 || (ActsOnTerminal(c.code) && c.code < 0x80)) {
      const bool kept = text[0] == '\n' || text[0] == '\t';
      out += kept ? std::string(1, text[0])
                  : fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    } else if (ActsOnTerminal(c.code)) {
      out += fmt::format("\\u{:04x}", c.code);
    } else {
      out += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  if (coloured) out += kReset;
  return out;
}

std::string ShownJson(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  while (!json.empty()) {
    const Character c = FirstCharacter(json);
    const size_t bytes = std::max<size_t>(c.bytes, 1);
    const bool escaped = c.bytes > 0 && c.code != '\n' && ActsOnTerminal(c.code);
    out += escaped ? fmt::format("\\u{:04x}", c.code) : std::string(json.substr(0, bytes));
    json.remove_prefix(bytes);
  }
  return out;
}

std::string Wrapped(std::string_view text, size_t columns) {
  if (columns == 0) return std::string(text);
  std::string out;
  bool first = true;
  for (std::string_view line : StrSplit(text, '\n')) {
    if (!first) out += '\n';
    first = false;
    if (Cells(line) <= columns) {
      out += line;
    } else {
      WrapLine(line, columns, &out);
    }
  }
  return out;
}

std::string NearestWord(std::string_view word, const std::vector<std::string>& known) {
  constexpr size_t kLongest = 64;
  if (word.empty() || word.size() > kLongest) return "";
  // One letter in three may be wrong.
  size_t least = word.size() / 3 + 1;
  std::string nearest;
  std::string longer;
  int begun = 0;
  for (const std::string& candidate : known) {
    if (candidate.starts_with(word) && ++begun == 1) longer = candidate;
    const size_t distance = Distance(word, candidate);
    if (distance >= least) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest.empty() && begun == 1 ? longer : nearest;
}

}  // namespace fusion
