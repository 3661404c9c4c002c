#pragma once

#include <string>
#include <vector>

#include "core/bundle/plan.h"
#include "core/device/device_spec.h"
#include "core/schedule/ir/schedule.h"

namespace fusion {

/// Estimates the cost of a kernel on a device and keeps every term:
///
///   time = max(compute, memory) + stall + launch + tiling loss          microseconds
///
/// - compute: products at the device's rate for their type and block, other operations (counted in
///   additions) at its scalar rate, spread evenly over the units.
/// - memory: bytes that blocks fetch from the first shared level, and distinct bytes from memory.
///   What a private cache may still hold is a part of the former (Estimate::local_us).
///   With explicit memory every product fetches its operands again; if product and element-wise
///   units share no memory, their tiles go through the exchange level.
/// - stall: the part (1 - overlap) of the shorter of the two, and waiting for scratch that does not
///   fit the private caches.
/// - launch: starting the kernel, barriers between its phases, tasks and exchanges.
/// - tiling loss: idle units of the last wave, and short tiles.
///
/// Arithmetic, memory and all that follows from them are multiplied by the factor of the kernel's
/// class, if `device` has one (DeviceSpec::class_factors).
///
/// A pure function of schedule and spec; all constants come from the spec.
Estimate EstimateKernel(const Schedule& schedule, const DeviceSpec& device);

/// An estimate of `schedule` that was made without factors of classes, with the one of its class.
Estimate OfItsClass(const Estimate& estimate, const Schedule& schedule, const DeviceSpec& device);

/// The estimate of kernels that run one after the other: all terms are added; on_chip_bytes is the
/// maximum.
Estimate Sum(const Estimate& a, const Estimate& b);

/// `whole` with the part `before` replaced by `after`; on_chip_bytes is the maximum of all three.
Estimate Replaced(const Estimate& whole, const Estimate& before, const Estimate& after);

/// The estimate of the kernels of `parts` as sequential phases of one launch: their sum, with a
/// barrier in place of every launch but the first. Phases exchange data through memory in either
/// case.
Estimate EstimateSequence(const std::vector<Estimate>& parts, const DeviceSpec& device);
/// Microseconds that EstimateSequence saves against the sum. `parts` is at least 1.
double SavedBySequence(size_t parts, const DeviceSpec& device);

/// The largest term of a kernel's time: "products", "elements" (arithmetic), "launch", "idle units"
/// (too few blocks, or a partial last wave), or the name of the memory level that bounds its
/// traffic. Empty if all terms are 0.
std::string BoundOf(const Estimate& estimate, const DeviceSpec& device);

}  // namespace fusion
