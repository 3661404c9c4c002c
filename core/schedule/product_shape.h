#pragma once

#include <vector>

#include "core/schedule/lower.h"
#include "core/schedule/product_roles.h"

namespace fusion {

/// A product of a group: its op, how its dims take part, and its work.
struct ProductShape {
  int op = -1;
  ProductDims dims;
  double flops = 0;
};

/// The first of the longest of `dims`; -1 if there are none.
DimId LongestDim(const Smg& smg, const std::vector<DimId>& dims);

/// Blocks that the grid of a choice cuts a group into.
double BlockCount(const Smg& smg, const Choice& choice);

}  // namespace fusion
