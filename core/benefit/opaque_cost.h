#pragma once

#include <vector>

#include "core/device/device_spec.h"
#include "core/schedule/ir/schedule.h"

namespace fusion {

/// Seconds of arithmetic that one call of an opaque op takes where its dims have these windows, by
/// DimId of `schedule`. Pure. Its costs are measured on one CPU and scale with the device's rate of
/// element-wise arithmetic.
double OpaqueSeconds(const Schedule& schedule, const CallStmt& call,
                     const std::vector<double>& windows, const DeviceSpec& device);

}  // namespace fusion
