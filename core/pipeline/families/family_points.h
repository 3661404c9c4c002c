#pragma once

#include <cstdint>
#include <vector>

#include "core/bundle/options.h"

namespace fusion {

/// Values of the symbols of a family, in units of their multiples.
using Units = std::vector<int64_t>;

// This file chooses the values of a family's symbols at which something is imported, planned or
// checked.

/// By symbol: whether the members of a short range (below 256 units) are values within the range
/// (true), or primes above its largest value (false). Has no meaning for long ranges: their members
/// are always within the range.
using Inside = std::vector<bool>;

/// The choices of Inside to try, in this order: none, the short ranges with at least 8 units, each
/// short range alone, all of them. Values beyond a range may have another form than those within;
/// values within a range of few units may not tell products of dims apart.
std::vector<Inside> MemberPlaces(const std::vector<DimRange>& symbols);

/// The points (one value for each symbol) at which the members of a family are imported. Long
/// ranges: primes below the largest value, since a table of the model may end there. Short ranges:
/// as `inside` says. Of two symbols whose ranges overlap, neither has the larger value at every
/// point.
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

/// Points with every symbol at the lower or upper end of its range. Up to 4 symbols: all of these
/// points, 2^n. More: the points where one symbol is at the other end than all others, 2 n.
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
