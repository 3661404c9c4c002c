#pragma once

#include <limits>
#include <map>
#include <vector>

#include "core/algebra/leaves.h"
#include "core/op/body/index_map.h"

namespace fusion {

/// Where masks leave something: from the comparisons of coordinates in an expression, the region
/// outside of which it is 0 or -inf. A region is the set of points where every one of some affine
/// functions of the coordinates is at least 0; an empty list is everywhere. Derived from the
/// expression, never from the name of a mask; what is not affine narrows nothing.
using Region = std::vector<IndexExpr>;

/// Outside of it the expression is 0 (NaN and infinities aside: a masked NaN counts as masked).
Region RegionOfNonZero(const Expr& e, const Leaves& leaves);
/// Outside of it the expression is -inf.
Region RegionAboveMinusInfinity(const Expr& e, const Leaves& leaves);

/// Outside of `region` the expression is at most `bound`.
struct UpperRegion {
  Region region;
  double bound = -std::numeric_limits<double>::infinity();
};
/// Where finite numbers stand for -inf, too, as exporters have it.
UpperRegion RegionAboveMasks(const Expr& e, const Leaves& leaves);

/// Outside of `region` the expression is 0, provided that each of these running exponents (by leaf)
/// is at most its number: what is masked by a finite number underflows then.
struct UnderflowRegion {
  Region region;
  std::map<int, double> at_most;
};
UnderflowRegion RegionOfNoUnderflow(const Expr& e, const Leaves& leaves);

/// Holds both.
Region Hull(const Region& a, const Region& b);

}  // namespace fusion
