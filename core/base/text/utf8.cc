#include "core/base/text/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace fusion {
namespace {

bool IsWithinCharacter(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// Maximum number of continuation bytes of a character.
constexpr size_t kMostFollowing = 3;

}  // namespace

Utf8Character FirstCharacter(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return {first, 1};
  const size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return {};
  uint32_t code = first & (0x7fU >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if (!IsWithinCharacter(text[i])) return {};
    code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3fU);
  }
  constexpr std::array<uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < kLeast[bytes] || code > 0x10ffff || surrogate) return {};
  return {code, bytes};
}

bool ActsOnText(uint32_t code) {
  const bool control = code < 0x20 || (code >= 0x7f && code <= 0x9f);
  const bool line = code == 0x2028 || code == 0x2029;
  const bool turns = code == 0x61c || code == 0x200e || code == 0x200f ||
                     (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return control || line || turns;
}

std::string ShownCharacter(std::string_view text, size_t* bytes) {
  const Utf8Character c = FirstCharacter(text);
  *bytes = std::max<size_t>(c.bytes, 1);
  if (c.bytes > 0 && !ActsOnText(c.code)) return std::string(text.substr(0, c.bytes));
  if (c.bytes > 1) return fmt::format("\\u{:04x}", c.code);
  return fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
}

std::string OneLine(std::string_view text) {
  std::string out;
  size_t bytes = 0;
  for (; !text.empty(); text.remove_prefix(bytes)) out += ShownCharacter(text, &bytes);
  return out;
}

std::string ShownJson(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  while (!json.empty()) {
    const Utf8Character c = FirstCharacter(json);
    const size_t bytes = std::max<size_t>(c.bytes, 1);
    const bool escaped = c.bytes > 0 && c.code != '\n' && ActsOnText(c.code);
    out += escaped ? fmt::format("\\u{:04x}", c.code) : std::string(json.substr(0, bytes));
    json.remove_prefix(bytes);
  }
  return out;
}

std::string_view Utf8Prefix(std::string_view text, size_t most) {
  if (text.size() <= most) return text;
  size_t end = most;
  while (end > 0 && most - end < kMostFollowing && IsWithinCharacter(text[end])) --end;
  return text.substr(0, IsWithinCharacter(text[end]) ? most : end);
}

std::string_view Utf8Suffix(std::string_view text, size_t most) {
  if (text.size() <= most) return text;
  const size_t begin = text.size() - most;
  size_t at = begin;
  while (at < text.size() && at - begin < kMostFollowing && IsWithinCharacter(text[at])) ++at;
  return text.substr(at < text.size() && IsWithinCharacter(text[at]) ? begin : at);
}

}  // namespace fusion
