#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fusion {

/// One character of UTF-8.
struct Utf8Character {
  uint32_t code = 0;
  size_t bytes = 0;  // 0: the byte at hand begins none
};

/// The first character of `text`, which is not empty. Overlong forms, surrogates and what is cut
/// off are no characters.
Utf8Character FirstCharacter(std::string_view text);

/// Whether a terminal or a viewer acts on the character instead of showing it: controls, line and
/// paragraph separators, and what turns the direction of the text around it.
bool ActsOnText(uint32_t code);

/// As it stands in a line of text: the first character of `text` itself, or, if it acts on text or
/// is none, `\x1b` (one byte) or `\u202e`. `bytes`: how many bytes of `text` that is.
std::string ShownCharacter(std::string_view text, size_t* bytes);

/// `text` in one line: all its characters as ShownCharacter gives them, line ends and tabs too.
std::string OneLine(std::string_view text);

/// JSON whose strings, where alone they can be, have such characters as \uXXXX.
std::string ShownJson(std::string_view json);

/// The first bytes of `text`, at most `most`, that end where a character ends.
std::string_view Utf8Prefix(std::string_view text, size_t most);
/// The same from its end.
std::string_view Utf8Suffix(std::string_view text, size_t most);

}  // namespace fusion
