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

}  // namespace fusion
