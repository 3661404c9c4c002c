#pragma once

#include <string>
#include <vector>

#include "core/bundle/plan.h"
#include "core/device/device_spec.h"
#include "core/schedule/ir/schedule.h"

namespace fusion {

/// What a kernel is expected to cost on a device, with every term kept:
///
///   time = max(compute, memory) + stall + launch + tiling loss          microseconds
///
/// compute: products at the device's product rate for their type and block, everything else in
/// additions at its scalar rate, spread evenly over the units. memory: what blocks fetch from the
/// first shared level, and distinct bytes from memory; where memory is explicit every product
/// fetches its operands anew, and where product and element-wise units share none their tiles go
/// through the exchange level. stall: the part (1 - overlap) of the shorter of the two, and waiting
/// for scratch that does not fit the private caches. launch: starting the kernel, barriers between
/// its phases, tasks and exchanges. tiling loss: the last wave's idle units and short tiles. A pure
/// function of schedule and spec; constants come from the spec.
Estimate EstimateKernel(const Schedule& schedule, const DeviceSpec& device);

/// Kernels that run one after the other; of on-chip bytes, the most that one of them has.
Estimate Sum(const Estimate& a, const Estimate& b);

/// `whole`, in which what `before` estimates becomes what `after` does.
Estimate Replaced(const Estimate& whole, const Estimate& before, const Estimate& after);

/// The kernels of `parts` as phases of one launch, one after the other: their sum, with a barrier
/// in the place of every launch but the first. What one leaves behind the next one reads from
/// memory either way.
Estimate EstimateInTurn(const std::vector<Estimate>& parts, const DeviceSpec& device);
/// Microseconds by which that is below the sum. At least one part.
double SavedByTurns(size_t parts, const DeviceSpec& device);

/// What a kernel's time is mostly made of: "products", "elements" (arithmetic), "launch", "idle
/// units" (too few blocks, or a partial last wave), or the name of the memory level that its
/// traffic waits for. Empty for an estimate of nothing.
std::string BoundOf(const Estimate& estimate, const DeviceSpec& device);

}  // namespace fusion
