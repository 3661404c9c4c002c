#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fusion {

/// The word of `known` that `word` most likely misspells: the one with the smallest edit distance,
/// if at most a third of the letters differ, are missing, added or swapped with a neighbour; else
/// the only known word that begins with `word`. Empty if there is none, or if `word` is longer than
/// 64 bytes.
std::string NearestWord(std::string_view word, const std::vector<std::string>& known);

/// "; did you mean --threads?" with the NearestWord, to append to a message; empty if there is
/// none.
std::string DidYouMean(std::string_view word, const std::vector<std::string>& known);

}  // namespace fusion
