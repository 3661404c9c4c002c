#pragma once

#include <string>
#include <vector>

#include "core/device/device_spec.h"
#include "core/schedule/lower/lower.h"
#include "core/schedule/lower/product_shape.h"
#include "core/schedule/tiles/candidates.h"

namespace fusion {

/// Choices for devices with explicit memory: a block of a schedule has one unit with all its
/// memory, so tiles follow from the register blocks of the device and from how many units there are
/// to keep busy. Pure; deterministic.
class UnitTiles {
 public:
  /// `parallel`: dims that may become blocks. What it is made from outlives it.
  UnitTiles(const FusionGroup& group, const DeviceSpec& device,
            const std::vector<ProductShape>& products, const std::vector<DimId>& parallel)
      : group_(group), device_(device), products_(products), parallel_(parallel) {}

  /// Of a group with products, for each way to assign operand roles; the most promising first.
  std::vector<Choice> Products(const std::vector<Choice>& roles) const;
  /// Of a group without: from one block to several a unit.
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

/// The first `options.limit` of these choices whose schedules have a place on the device. If there
/// is none, `refusal` says what the last one lacked.
std::vector<Choice> KeepFitting(const FusionGroup& group, const DeviceSpec& device,
                                const std::vector<Choice>& choices, const CandidateOptions& options,
                                std::string* refusal);

}  // namespace fusion
