#pragma once

#include <string>
#include <vector>

#include "core/device/device_spec.h"
#include "core/schedule/lower/lower.h"
#include "core/schedule/lower/product_shape.h"
#include "core/schedule/tiles/candidates.h"

namespace fusion {

/// Choices for devices with explicit memory. A block has one unit of the device with all its
/// memory, so tiles follow from the device's register blocks and from the number of units to keep
/// busy. Pure; deterministic.
class UnitTiles {
 public:
  /// `parallel`: ParallelDims of the group. Keeps references to its arguments.
  UnitTiles(const FusionGroup& group, const DeviceSpec& device,
            const std::vector<ProductShape>& products, const std::vector<DimId>& parallel)
      : group_(group), device_(device), products_(products), parallel_(parallel) {}

  /// For a group with products: choices for each assignment of operand roles, the most promising
  /// first.
  std::vector<Choice> Products(const std::vector<Choice>& roles) const;
  /// For a group without products: as many blocks as the device has units, more, and fewer.
  std::vector<Choice> Rows() const;

 private:
  using Windows = std::vector<int64_t>;
  int64_t extent(DimId d) const { return group_.smg.dim(d).extent; }
  bool Parallel(DimId d) const;
  bool IsContiguous(DimId d) const;
  void SetBlocks(const RegisterBlock& widest, const Windows& window, Choice* choice) const;
  double Seconds(const Choice& choice, const Windows& window) const;

  const FusionGroup& group_;
  const DeviceSpec& device_;
  const std::vector<ProductShape>& products_;
  const std::vector<DimId>& parallel_;
};

/// The first `options.limit` of these choices whose schedules fit on the device. Lowers at most 64
/// of them. If none fits, `*refusal` (may be null) gets the reason for the last one.
std::vector<Choice> KeepFitting(const FusionGroup& group, const DeviceSpec& device,
                                const std::vector<Choice>& choices, const CandidateOptions& options,
                                std::string* refusal);

}  // namespace fusion
