#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fusion {

/// Of `known` the word that `word` was meant to be: one with few letters other, more, less or
/// swapped, or the only one that begins with it. Empty: none.
std::string NearestWord(std::string_view word, const std::vector<std::string>& known);

/// "; did you mean --threads?"; empty if there is no such word.
std::string DidYouMean(std::string_view word, const std::vector<std::string>& known);

}  // namespace fusion
