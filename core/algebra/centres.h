#pragma once

#include <vector>

#include "core/algebra/leaves.h"

namespace fusion {

/// True if a running sum may be updated whenever its centres change from tile to tile
/// (AlgebraRule::kShift), without losing more digits than if it were separated into sums of its
/// elements and sums of its centres.
///
/// If all terms are at most linear in the centres, every centre must be *steady*: its value after a
/// few tiles (sums extrapolated to the whole dim) has the magnitude of the values that it is
/// computed from. These are steady: extrema, sums and means of anything; sums of these, also
/// scaled; and weighted means with non-negative weights. No other function counts as steady: the
/// reciprocal of a sum, for example, has a pole that partial sums may approach.
///
/// In terms of higher degree the error of a partial centre is squared and must cancel later, so the
/// terms must not be larger than those of the final sum. They must be polynomials in the distances
/// of elements from their own mean or extremum (central moments), because then the partial centre
/// lies among the elements.
///
/// `rest`: the summed expression, over slices, fixed leaves and `centres`. `centres`: indices of
/// leaves of kind kCentre. `curved`: those of `centres`, in the same order, that occur in terms of
/// degree above 1. May add leaves to `leaves`.
bool CanFollow(const Expr& rest, const std::vector<int>& centres, const std::vector<int>& curved,
               Leaves* leaves);

}  // namespace fusion
