#include "core/base/text/text.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>

#include "core/base/text/hex_digit.h"
#include "core/base/text/utf8.h"

namespace fusion {
namespace text_internal {

void Append(std::string* out, std::string_view text) { out->append(text); }

namespace {
template <typename T>
void AppendNumber(std::string* out, T value) {
  char buffer[32];
  auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value);
  out->append(buffer, end);
}
}  // namespace

void Append(std::string* out, int64_t value) { AppendNumber(out, value); }
void Append(std::string* out, uint64_t value) { AppendNumber(out, value); }
void Append(std::string* out, double value) { AppendNumber(out, value); }

}  // namespace text_internal

namespace {

// Of exactly so many hexadecimal digits.
std::optional<uint32_t> HexNumber(std::string_view text, size_t digits) {
  if (text.size() != digits) return std::nullopt;
  uint32_t value = 0;
  for (char c : text) {
    const int digit = HexDigit(c);
    if (digit < 0) return std::nullopt;
    value = value << 4 | static_cast<uint32_t>(digit);
  }
  return value;
}

// As UTF-8; `code` is below 2^16.
void AppendCharacter(uint32_t code, std::string* out) {
  auto add = [out](uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xc0U | code >> 6);
  } else {
    add(0xe0U | code >> 12);
    add(0x80U | (code >> 6 & 0x3fU));
  }
  add(0x80U | (code & 0x3fU));
}

}  // namespace

std::string Quote(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    size_t bytes = 1;
    if (text[0] == '"' || text[0] == '\\') {
      out += '\\';
      out += text[0];
    } else if (text[0] >= 0x20 && text[0] < 0x7f) {
      out += text[0];
    } else {
      out += ShownCharacter(text, &bytes);
    }
    text.remove_prefix(bytes);
  }
  out += '"';
  return out;
}

std::string QuoteShort(std::string_view text) {
  constexpr size_t kShown = 120;
  constexpr size_t kTail = 30;
  if (text.size() <= kShown) return Quote(text);
  return StrCat(Quote(Utf8Prefix(text, kShown - kTail)), "...", Quote(Utf8Suffix(text, kTail)));
}

bool Unquote(std::string_view text, size_t* pos, std::string* out) {
  size_t i = *pos;
  if (i >= text.size() || text[i] != '"') return false;
  std::string result;
  for (++i; i < text.size(); ++i) {
    if (text[i] == '"') {
      *pos = i + 1;
      *out = std::move(result);
      return true;
    }
    if (text[i] != '\\') {
      result += text[i];
      continue;
    }
    if (++i >= text.size()) return false;
    if (text[i] != 'x' && text[i] != 'u') {
      result += text[i];
      continue;
    }
    const size_t digits = text[i] == 'x' ? 2 : 4;
    const std::optional<uint32_t> code = HexNumber(text.substr(i + 1, digits), digits);
    if (!code) return false;
    if (digits == 2) {
      result += static_cast<char>(*code);
    } else {
      AppendCharacter(*code, &result);
    }
    i += digits;
  }
  return false;
}

std::string HexDouble(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), "%a", value);
  return buffer;
}

std::vector<std::string_view> StrSplit(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  size_t begin = 0;
  for (;;) {
    size_t end = text.find(separator, begin);
    if (end == std::string_view::npos) {
      pieces.push_back(text.substr(begin));
      return pieces;
    }
    pieces.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

std::string_view StripSpace(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::string HumanBytes(int64_t bytes) {
  if (bytes < 1024) return StrCat(bytes, " B");
  auto value = static_cast<double>(bytes);
  const char* unit = "";
  for (const char* next : {"KiB", "MiB", "GiB", "TiB"}) {
    if (value < 1024) break;
    value /= 1024;
    unit = next;
  }
  return fmt::format("{:.2f} {}", value, unit);
}

}  // namespace fusion
