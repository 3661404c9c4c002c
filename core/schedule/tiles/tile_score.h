#pragma once

#include <vector>

#include "core/device/device_spec.h"
#include "core/schedule/lower/product_shape.h"

namespace fusion {

/// Seconds, roughly, that a group with products takes on a device with caches: products at their
/// block's efficiency, operand traffic from the shared cache, whole waves of tasks, and a penalty
/// for tiles that leave the private cache. Only ranks tiles of one group against each other. Pure;
/// what it is made from outlives it.
class TileScore {
 public:
  /// `windows`: blocks may have halos.
  TileScore(const FusionGroup& group, const DeviceSpec& device,
            const std::vector<ProductShape>& products, bool windows)
      : group_(group), smg_(group.smg), device_(device), products_(products), windows_(windows) {}

  /// Of a choice whose blocks have these windows. `kept`: the windows of what lies between
  /// products.
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
