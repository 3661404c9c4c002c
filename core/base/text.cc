#include "core/base/text.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdio>

#include "core/base/hex_digit.h"

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

std::string Quote(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c >= 0x20 && c < 0x7f) {
      out += c;
    } else {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  out += '"';
  return out;
}

std::string QuoteShort(std::string_view text) {
  constexpr size_t kShown = 120;
  constexpr size_t kTail = 30;
  if (text.size() <= kShown) return Quote(text);
  return StrCat(Quote(text.substr(0, kShown - kTail)), "...",
                Quote(text.substr(text.size() - kTail)));
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
    if (text[i] != 'x') {
      result += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return false;
    int high = HexDigit(text[i + 1]);
    int low = HexDigit(text[i + 2]);
    if (high < 0 || low < 0) return false;
    result += static_cast<char>(high * 16 + low);
    i += 2;
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
