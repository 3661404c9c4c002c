#pragma once

#include <vector>

#include "core/device/device_spec.h"
#include "core/schedule/ir/schedule.h"

namespace fusion {

/// Estimated seconds of arithmetic of one call of an opaque op. `windows`: lengths of the dims, by
/// DimId of `schedule`. The costs were measured on one CPU and scale with the device's rate of
/// element-wise arithmetic. Pure.
double OpaqueSeconds(const Schedule& schedule, const CallStmt& call,
                     const std::vector<double>& windows, const DeviceSpec& device);

}  // namespace fusion
