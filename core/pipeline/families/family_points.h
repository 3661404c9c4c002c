#pragma once

#include <cstdint>
#include <vector>

#include "core/bundle/options.h"

namespace fusion {

/// Values of the symbols of a family, in units of their multiples.
using Units = std::vector<int64_t>;

// Values of the symbols of a family, in units of their multiples, at which something is planned.

/// Which symbols take their members' values from within a short range; the others take primes
/// beyond it. Of a long range members are always within.
using Inside = std::vector<bool>;

/// What to try, in this order: none of them, those with several values, each one by itself, all of
/// them. Values beyond a range may be of another form than those within it; of a range of few
/// values they tell products of dims apart.
std::vector<Inside> MemberPlaces(const std::vector<DimRange>& symbols);

/// Units of the members of a family: primes below the largest value of a long range, which a table
/// may end with; of a short one as `inside` says. Of two symbols that may stand in either order,
/// neither is the larger one at every point.
std::vector<std::vector<int64_t>> MemberPoints(const std::vector<DimRange>& symbols,
                                               const Inside& inside);

/// Units of its samples, in ascending order: smallest, likely and middle values, and some between
/// the smallest and those.
std::vector<std::vector<int64_t>> SamplePoints(const std::vector<DimRange>& symbols);

/// Values at which what is planned for all of them is compared with the graph itself.
struct CheckPointList {
  std::vector<std::vector<int64_t>> units;
  bool exhaustive = false;  // they are all values that there are
};

/// Where every symbol is at an end of its range: all such points of a few symbols; of many those
/// with one symbol at the other end than all others.
std::vector<std::vector<int64_t>> Corners(const std::vector<DimRange>& symbols);

/// All values of few. Else the corners, the ends of each range and their neighbours, each with
/// several values of the other symbols, and some between them.
CheckPointList CheckPoints(const std::vector<DimRange>& symbols);

/// Among the samples the one that a variant for few elements is cut for.
std::vector<int64_t> FewPoint(const std::vector<DimRange>& symbols);

/// The ranges for which a variant for few elements is made: those that are long end in their
/// middle. Empty: there are not many more elements at the largest values than at the smallest.
std::vector<DimRange> FewRanges(const std::vector<DimRange>& symbols);

/// As many times the least as the most is of it.
int64_t MiddleOf(int64_t least, int64_t most);

}  // namespace fusion
