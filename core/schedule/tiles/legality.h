#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/device/device_spec.h"
#include "core/schedule/ir/schedule.h"

namespace fusion {

/// Bytes that one block of a schedule needs at the same time, by what they hold.
struct OnChipNeed {
  int64_t staged = 0;        // tiles between ops
  int64_t operands = 0;      // slices of product operands on their way to the product unit
  int64_t accumulators = 0;  // of the products of one loop body

  /// The same by level of a device with explicit memory.
  std::map<std::string, int64_t> ByLevel(const DeviceSpec& device) const;
};

/// What the largest block of a schedule needs. Operands that lie in a staged tile already are in
/// place, unless products and element-wise work share no memory. Behind caches operands and
/// accumulators need nothing. Pure.
OnChipNeed NeedOnChip(const Schedule& schedule, const DeviceSpec& device);

/// Why a schedule has no place on a device with explicit memory: "on-chip: the tiles of a
/// block take 262144 B, shared has 232448 B". Empty if it has one, and always behind caches.
std::string Misfit(const OnChipNeed& need, const DeviceSpec& device);

}  // namespace fusion
