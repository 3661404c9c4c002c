#pragma once

#include <cstdint>
#include <string>

#include "core/device/device_spec.h"
#include "core/device/target.h"

namespace fusion {

/// Bytes of other memory to touch before a timed run, to displace from the caches what the other
/// kernels of a plan would displace. `others_bytes`: bytes that those kernels move in a run.
/// Returns twice the largest cache that is no larger than `others_bytes`, but at most `most`,
/// because the caches in `device` come from the caller.
int64_t DisplacedBytes(const DeviceSpec& device, int64_t others_bytes, int64_t most);

/// The limit of DisplacedBytes on a machine (core/device/host_cpu.h): twice its caches if they are
/// known, at most kMostDisplacedBytes.
int64_t MostDisplacedBytes(const Target& machine);
inline constexpr int64_t kMostDisplacedBytes = int64_t{256} << 20;

/// Identifies the machine in the digests of races and in texts: "GenuineIntel family 6 model 143".
std::string MachineName(const Target& machine);

}  // namespace fusion
