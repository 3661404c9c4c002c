#pragma once

#include <string>

#include "core/device/target.h"

namespace fusion {

/// Describes the machine of this process for a request: CPU vendor, family and model, the highest
/// ISA level that CPU and operating system support, further features, bytes of data caches,
/// threads.
///
///   request.target = DetectTarget();
///
/// `threads`: how many will run the plan; 0: as many as the cores of the affinity mask. Cache
/// sizes come from CPUID, else from sysfs; 0 if both fail. `isa` is empty on a machine below every
/// supported level.
Target DetectTarget(int threads = 0);

/// The name of this machine's CPU as reported by the CPU: "Intel(R) Xeon(R) Processor @ 2.50GHz".
/// Its vendor if it reports no name.
std::string DeviceName();

}  // namespace fusion
