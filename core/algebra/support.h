#pragma once

#include <limits>
#include <map>
#include <vector>

#include "core/algebra/leaves.h"
#include "core/op/body/index_map.h"

namespace fusion {

/// A region of points: those where each of these affine functions of the coordinates is >= 0. An
/// empty list is the whole space.
///
/// The functions below derive where a masked expression may differ from 0 or -inf, from the
/// comparisons of coordinates in the expression. They do not depend on names of masks.
/// Comparisons that are not affine do not narrow the region, so a region may be too large but never
/// too small.
using Region = std::vector<IndexExpr>;

/// Where `e` may differ from 0; elsewhere it is 0. Ignores NaN and infinities: a masked NaN counts
/// as masked.
Region RegionOfNonZero(const Expr& e, const Leaves& leaves);
/// Where `e` may be above -inf; elsewhere it is -inf.
Region RegionAboveMinusInfinity(const Expr& e, const Leaves& leaves);

/// Outside of `region` the expression is at most `bound`.
struct UpperRegion {
  Region region;
  double bound = -std::numeric_limits<double>::infinity();
};
/// As RegionAboveMinusInfinity, but finite constants that exporters use instead of -inf are masks
/// too: outside of the region `e` is at most the bound.
UpperRegion RegionAboveMasks(const Expr& e, const Leaves& leaves);

/// Outside of `region` the expression is 0, provided that each running exponent in `at_most` (leaf
/// index -> limit) does not exceed its limit: then exponentials of values masked by a finite number
/// underflow.
struct UnderflowRegion {
  Region region;
  std::map<int, double> at_most;
};
UnderflowRegion RegionOfNoUnderflow(const Expr& e, const Leaves& leaves);

/// A region that contains both.
Region Hull(const Region& a, const Region& b);

}  // namespace fusion
