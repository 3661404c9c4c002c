#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fusion {

/// One character of UTF-8.
struct Utf8Character {
  uint32_t code = 0;
  size_t bytes = 0;  // length of its encoding; 0: the text does not begin with a valid character
};

/// The first character of `text`, which must not be empty. Overlong forms, surrogates and truncated
/// sequences are not valid.
Utf8Character FirstCharacter(std::string_view text);

/// True if a terminal or a viewer acts on the character instead of showing it: control characters,
/// line and paragraph separators, and controls of text direction.
bool ActsOnText(uint32_t code);

/// The first character of `text` in a form that is safe in one line: itself, or an escape if it
/// ActsOnText or is invalid: `\x1b` for one byte, else `\u202e`. Sets `*bytes` to the number of
/// bytes of `text` that it covers. `text` must not be empty.
std::string ShownCharacter(std::string_view text, size_t* bytes);

/// `text` on one line: ShownCharacter of each character, including line ends and tabs.
std::string OneLine(std::string_view text);

/// JSON text with every character that ActsOnText, except line feeds, as \uXXXX. They must occur
/// inside strings only: `json` has no tabs or carriage returns between tokens. Invalid bytes stay.
std::string ShownJson(std::string_view json);

/// The longest prefix of `text` of at most `most` bytes that ends at the end of a character. Where
/// the text is not UTF-8 it is cut after `most` bytes.
std::string_view Utf8Prefix(std::string_view text, size_t most);
/// Likewise the longest suffix that begins with a whole character.
std::string_view Utf8Suffix(std::string_view text, size_t most);

}  // namespace fusion
