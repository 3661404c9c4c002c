#pragma once

#include <cstdint>
#include <vector>

#include "core/bundle/options.h"

namespace fusion {

/// Values of the symbols of a family, in units of their multiples.
using Units = std::vector<int64_t>;

// This file chooses the values of a family's symbols at which something is imported, planned or
// checked.

/// By symbol: whether a short range (below 256 units) gives its members values within the range.
/// Otherwise its members get primes beyond it. Members of a long range are always within it.
using Inside = std::vector<bool>;

/// The choices of Inside to try, in this order: none, the short ranges with at least 8 units, each
/// short range alone, all of them. Values beyond a range may have another form than those within;
/// values within a range of few units may not tell products of dims apart.
std::vector<Inside> MemberPlaces(const std::vector<DimRange>& symbols);

/// The members of a family: primes below the largest value of a long range (a table may end there);
/// for a short range as `inside` says. Of two symbols whose ranges overlap, neither is the larger
/// one at every point.
std::vector<std::vector<int64_t>> MemberPoints(const std::vector<DimRange>& symbols,
                                               const Inside& inside);

/// The samples of a family, in ascending order: smallest, likely and middle values, and FewPoint.
/// Values of 0 and 1 are avoided where the range allows it.
std::vector<std::vector<int64_t>> SamplePoints(const std::vector<DimRange>& symbols);

/// Points at which a family is compared with the graph itself.
struct CheckPointList {
  std::vector<std::vector<int64_t>> units;
  bool exhaustive = false;  // `units` are all combinations of values
};

/// Points with every symbol at an end of its range: all of them for up to 4 symbols; else those
/// with one symbol at the other end than all others.
std::vector<std::vector<int64_t>> Corners(const std::vector<DimRange>& symbols);

/// All combinations if there are at most 16. Else the corners, the ends of each range and their
/// neighbours with several values of the other symbols, and 8 values between them.
CheckPointList CheckPoints(const std::vector<DimRange>& symbols);

/// The sample whose groups and tilings a variant for few elements uses.
std::vector<int64_t> FewPoint(const std::vector<DimRange>& symbols);

/// The ranges of a variant for few elements: long ranges end in their middle. Empty if the largest
/// values have less than 16 times the elements of the smallest.
std::vector<DimRange> FewRanges(const std::vector<DimRange>& symbols);

/// The geometric mean, rounded down, within least..most.
int64_t MiddleOf(int64_t least, int64_t most);

}  // namespace fusion
