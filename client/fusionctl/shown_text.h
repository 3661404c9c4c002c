#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fusion {

// What a terminal may get of texts that come from elsewhere: a server, a file, a model.

/// `text` with all that a terminal would act on escaped ("\x1b", "\u202e"): control characters but
/// tabs and line ends, bytes that are no UTF-8, and characters that turn the direction of text.
/// `own_colours`: the sequences of Bold, Good and Bad stay, and are ended.
std::string Shown(std::string_view text, bool own_colours);

/// JSON without such characters: in its strings, where alone they can be, they are \uXXXX.
std::string ShownJson(std::string_view json);

/// Lines of more than `columns` cells broken at spaces. What follows a break begins two cells
/// further right than its line. Words that are longer stay whole. 0: as it is.
std::string Wrapped(std::string_view text, size_t columns);

/// Of `known` the word that `word` was meant to be: one with few letters other, more, less or
/// swapped, or the only one that begins with it. Empty: none.
std::string NearestWord(std::string_view word, const std::vector<std::string>& known);

}  // namespace fusion
