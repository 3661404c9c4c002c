#pragma once

#include <vector>

#include "core/algebra/leaves.h"
#include "core/op/index_map.h"

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

/// Holds both.
Region Hull(const Region& a, const Region& b);

}  // namespace fusion
