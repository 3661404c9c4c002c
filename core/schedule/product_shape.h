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

/// Points of windows, given for every dim, along `dims`.
double PointsOf(const std::vector<DimId>& dims, const Dims& windows);

/// True if read r of a product is copied next to each other before it.
bool IsStaged(const ProductChoice& choice, size_t r);

/// Blocks that the grid of a choice cuts a group into.
double BlockCount(const Smg& smg, const Choice& choice);

}  // namespace fusion
