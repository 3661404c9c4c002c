#include "core/base/text/nearest_word.h"

#include <algorithm>

#include "core/base/text/text.h"

namespace fusion {
namespace {

// Edit distance: letters replaced, added, missing, or swapped with a neighbour
// (Damerau-Levenshtein).
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t other = a[i - 1] == b[j - 1] ? 0 : 1;
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + other});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string NearestWord(std::string_view word, const std::vector<std::string>& known) {
  constexpr size_t kLongest = 64;
  if (word.empty() || word.size() > kLongest) return "";
  // One letter in three may be wrong.
  size_t least = word.size() / 3 + 1;
  std::string nearest;
  std::string longer;
  int begun = 0;
  for (const std::string& candidate : known) {
    if (candidate.starts_with(word) && ++begun == 1) longer = candidate;
    const size_t distance = Distance(word, candidate);
    if (distance >= least) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest.empty() && begun == 1 ? longer : nearest;
}

std::string DidYouMean(std::string_view word, const std::vector<std::string>& known) {
  const std::string nearest = NearestWord(word, known);
  return nearest.empty() ? "" : StrCat("; did you mean ", nearest, "?");
}

}  // namespace fusion
