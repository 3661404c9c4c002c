#include "core/schedule/lower/product_shape.h"

#include <cmath>
#include <utility>

namespace fusion {

DimId LongestDim(const Smg& smg, const std::vector<DimId>& dims) {
  DimId best = -1;
  for (DimId d : dims) {
    if (best < 0 || smg.dim(d).extent > smg.dim(best).extent) best = d;
  }
  return best;
}

DType RateType(const std::array<DType, 2>& factors, bool flushes, const DeviceSpec& device) {
  if (SumType(factors[0]) == DType::kI32) return DType::kI8;
  if (device.explicit_memory) return factors[0];
  const bool pairs = factors[0] == DType::kBF16 && factors[1] == DType::kBF16;
  return pairs && flushes ? DType::kBF16 : DType::kF32;
}

DType RateType(const FusionGroup& group, int op, bool swap, const DeviceSpec& device) {
  std::array<DType, 2> factors = *FactorTypes(group.smg.op(op));
  if (swap) std::swap(factors[0], factors[1]);
  return RateType(factors, group.flushes, device);
}

double BlockCount(const Smg& smg, const Choice& choice) {
  double blocks = 1;
  for (const GridDim& g : choice.grid) {
    blocks *= std::ceil(static_cast<double>(smg.dim(g.dim).extent) / static_cast<double>(g.tile));
  }
  return blocks;
}

double PointsOf(const std::vector<DimId>& dims, const Dims& windows) {
  double points = 1;
  for (DimId d : dims) points *= static_cast<double>(windows[static_cast<size_t>(d)]);
  return points;
}

bool IsStaged(const ProductChoice& choice, size_t r) {
  return choice.stage_rows && r == (choice.swap ? 1u : 0u);
}

}  // namespace fusion
