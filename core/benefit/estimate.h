#pragma once

#include "core/bundle/plan.h"
#include "core/device/device_spec.h"
#include "core/schedule/schedule.h"

namespace fusion {

/// What a kernel is expected to cost on a device, with every term kept:
///
///   time = max(compute, memory) + stall + launch + tiling loss          microseconds
///
/// compute: register-blocked products at the device's product rate, everything else in additions at
/// its scalar rate, spread evenly over the threads. memory: what blocks fetch from the first shared
/// level, and distinct bytes from memory. stall: the part (1 - overlap) of the shorter of the two,
/// and waiting for scratch that does not fit the private caches. tiling loss: the last wave's idle
/// threads and short tiles. A pure function of schedule and spec; constants come from the spec.
Estimate EstimateKernel(const Schedule& schedule, const DeviceSpec& device);

}  // namespace fusion
