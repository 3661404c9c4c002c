#pragma once

#include <array>
#include <vector>

#include "core/schedule/lower/lower.h"
#include "core/schedule/lower/product_roles.h"

namespace fusion {

/// A product of a group: its op, the roles of its dims, and its work in flops.
struct ProductShape {
  int op = -1;
  ProductDims dims;
  double flops = 0;
};

/// The dim with the largest extent, the first one of several; -1 if `dims` is empty.
DimId LongestDim(const Smg& smg, const std::vector<DimId>& dims);

/// Product of the window lengths along `dims`. `windows`: by dim of the SMG.
double PointsOf(const std::vector<DimId>& dims, const Dims& windows);

/// True if `choice` copies read r of a product to contiguous memory first.
bool IsStaged(const ProductChoice& choice, size_t r);

/// The element type whose rate and register blocks (DeviceSpec::BlocksOf) apply to a product.
/// `factors`: types of rows and columns. kI8 for u8 by i8. On CPUs kBF16 for bf16 by bf16 if
/// `flushes`, since such instructions flush denormals, else kF32: narrower columns are widened.
/// With explicit memory the type of the rows.
DType RateType(const std::array<DType, 2>& factors, bool flushes, const DeviceSpec& device);
/// RateType of product `op` of a group, its operands swapped if `swap`.
DType RateType(const FusionGroup& group, int op, bool swap, const DeviceSpec& device);

/// Number of blocks of a choice's grid.
double BlockCount(const Smg& smg, const Choice& choice);

}  // namespace fusion
