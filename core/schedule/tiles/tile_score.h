#pragma once

#include <vector>

#include "core/device/device_spec.h"
#include "core/schedule/lower/product_shape.h"

namespace fusion {

/// A rough estimate, in seconds, for a group with products on a device with caches: products at the
/// efficiency of their register block, operand traffic from the shared cache, whole waves of tasks,
/// and a penalty for tiles that leave the private cache. Use it only to rank tiles of one group.
/// Pure; keeps references to its arguments.
class TileScore {
 public:
  /// `windows`: whether blocks may have halos.
  TileScore(const FusionGroup& group, const DeviceSpec& device,
            const std::vector<ProductShape>& products, bool windows)
      : group_(group), smg_(group.smg), device_(device), products_(products), windows_(windows) {}

  /// The estimate for a choice. `window`: the longest window of each dim in its blocks. `kept`: the
  /// windows that intermediate values between products have.
  double Of(const Choice& c, const Dims& window, const Dims& kept) const;

 private:
  double BlockEfficiency(const ProductShape& p, const ProductChoice& c, double rows,
                         const Dims& window) const;
  double PointwiseSeconds(const Dims& window) const;

  const FusionGroup& group_;
  const Smg& smg_;
  const DeviceSpec& device_;
  const std::vector<ProductShape>& products_;
  bool windows_;
};

}  // namespace fusion
