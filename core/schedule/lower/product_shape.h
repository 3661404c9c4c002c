#pragma once

#include <array>
#include <vector>

#include "core/schedule/lower/lower.h"
#include "core/schedule/lower/product_roles.h"

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

/// The type whose rate and register blocks a product of factors of these types has: instructions of
/// CPUs for pairs of bf16 flush denormals, those for quads multiply u8 by i8; rows of f32 beside
/// narrower columns are multiplied in f32. `factors`: rows and columns.
DType RateType(const std::array<DType, 2>& factors, bool flushes, const DeviceSpec& device);
/// That of a product of a group.
DType RateType(const FusionGroup& group, int op, bool swap, const DeviceSpec& device);

/// Blocks that the grid of a choice cuts a group into.
double BlockCount(const Smg& smg, const Choice& choice);

}  // namespace fusion
