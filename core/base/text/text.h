#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace fusion {

namespace text_internal {
// One overload per kind of value, compiled once: a template per call site costs seconds of build
// time.
void Append(std::string* out, std::string_view text);
void Append(std::string* out, int64_t value);
void Append(std::string* out, uint64_t value);
void Append(std::string* out, double value);
}  // namespace text_internal

/// Appends the text of `part`: strings, characters, integers, enums as numbers, bools as
/// true/false, floats in the shortest decimal form that reads back exactly.
template <typename Part>
void StrAppend(std::string* out, const Part& part) {
  if constexpr (std::is_convertible_v<const Part&, std::string_view>) {
    text_internal::Append(out, std::string_view(part));
  } else if constexpr (std::is_same_v<Part, char>) {
    out->push_back(part);
  } else if constexpr (std::is_same_v<Part, bool>) {
    text_internal::Append(out, part ? "true" : "false");
  } else if constexpr (std::is_enum_v<Part>) {
    text_internal::Append(out, static_cast<int64_t>(part));
  } else if constexpr (std::is_floating_point_v<Part>) {
    text_internal::Append(out, static_cast<double>(part));
  } else if constexpr (std::is_unsigned_v<Part>) {
    text_internal::Append(out, static_cast<uint64_t>(part));
  } else {
    text_internal::Append(out, static_cast<int64_t>(part));
  }
}

/// Concatenates the text of every argument.
///
///   StrCat("axis ", 4, " out of range")   ->  "axis 4 out of range"
///
/// Why not absl::StrCat: Debian's Abseil has its own string_view type, which does not take
/// std::string_view.
template <typename... Parts>
std::string StrCat(const Parts&... parts) {
  std::string out;
  (StrAppend(&out, parts), ...);
  return out;
}

/// Joins the elements of a range with `separator`, each printed by `print(element)` or by StrCat.
template <typename Range, typename Print>
std::string StrJoin(const Range& range, std::string_view separator, Print print) {
  std::string out;
  bool first = true;
  for (const auto& element : range) {
    if (!first) out += separator;
    first = false;
    out += print(element);
  }
  return out;
}
template <typename Range>
std::string StrJoin(const Range& range, std::string_view separator) {
  return StrJoin(range, separator, [](const auto& element) { return StrCat(element); });
}

/// `text` in double quotes, on one line even if the text is hostile. Escapes quotes, backslashes,
/// and characters that ActsOnText (core/base/text/utf8.h), as \xNN or \uNNNN. Inverse: Unquote.
std::string Quote(std::string_view text);

/// Quote for messages, bounded in length: of a text of more than 120 bytes it shows only the
/// beginning and the end.
std::string QuoteShort(std::string_view text);

/// Reads a string written by Quote starting at text[*pos] == '"'; moves *pos behind the closing
/// quote. Returns false (and leaves *pos alone) if there is no well-formed quoted string.
bool Unquote(std::string_view text, size_t* pos, std::string* out);

/// Shortest text that reads back as exactly the same double; always a valid C++ literal of type
/// double for finite values ("0x1.8p+1"), else "inf", "-inf" or "nan".
std::string HexDouble(double value);

/// Splits at every `separator`; empty pieces are kept. "a,,b" -> {"a","","b"}; "" -> {""}.
std::vector<std::string_view> StrSplit(std::string_view text, char separator);

/// `text` without leading and trailing spaces, tabs and line ends.
std::string_view StripSpace(std::string_view text);

/// Bytes for people: "512 B", "1.50 MiB".
std::string HumanBytes(int64_t bytes);

}  // namespace fusion
