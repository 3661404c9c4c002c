#pragma once

#include <vector>

#include "core/algebra/leaves.h"

namespace fusion {

/// Whether a sum may follow its centres from tile to tile without losing more digits than the same
/// sum does when it is taken apart into those of its elements and those of its centres.
///
/// A sum of what is at most linear in its centres may, if each centre is *steady*: what it is taken
/// for after a few tiles (sums extrapolated to the whole) is of the size of what it is made from.
/// So are extrema, sums and means of anything, added up and scaled, and weighted means (weights not
/// negative); no other function is: a reciprocal of a sum, say, has a pole that partial sums come
/// near to. A sum of higher degree squares what it must lose again, so that its terms may not be
/// larger than those of the final sum: it must be a polynomial in how far elements are from their
/// own mean or extremum (central moments), where the partial centre lies among the elements.
/// `rest`: over slices, fixed leaves and `centres`, which are leaves of kind kCentre. Adds leaves.
/// `curved`: those of the centres, in their order, that occur in terms of a degree above 1.
bool CanFollow(const Expr& rest, const std::vector<int>& centres, const std::vector<int>& curved,
               Leaves* leaves);

}  // namespace fusion
