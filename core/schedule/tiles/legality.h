#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/device/device_spec.h"
#include "core/schedule/ir/schedule.h"

namespace fusion {

/// On-chip memory that one block of a schedule needs at a time, in bytes, by use.
struct OnChipNeed {
  int64_t staged = 0;        // tiles between ops
  int64_t operands = 0;      // slices of product operands, buffered for the product unit
  int64_t accumulators = 0;  // of the products of one loop body

  /// The need by memory level (DeviceSpec) of a device with explicit memory.
  std::map<std::string, int64_t> ByLevel(const DeviceSpec& device) const;
};

/// The need of the largest block of a schedule. Operands that are in a staged tile already need
/// nothing, unless products and element-wise work share no memory on the device. On devices with
/// caches only `staged` is set. Pure.
OnChipNeed NeedOnChip(const Schedule& schedule, const DeviceSpec& device);

/// Why a schedule does not fit on a device with explicit memory: "on-chip: the tiles of a block
/// take 262144 B, shared has 232448 B". Empty if it fits, and always on devices with caches.
std::string Misfit(const OnChipNeed& need, const DeviceSpec& device);

}  // namespace fusion
