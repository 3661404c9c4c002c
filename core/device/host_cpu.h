#pragma once

#include <string>

#include "core/device/target.h"

namespace fusion {

/// The CPU of this machine: vendor, family, model, sizes of data caches, and number of hardware
/// threads (at least 1). The other fields of the Target, `isa` too, keep their defaults. Cache
/// sizes come from CPUID, else from sysfs; 0 if neither has them.
Target HostCpu();

/// The brand string of the CPU, for people: "Intel(R) Xeon(R) Processor @ 2.50GHz"; its vendor if
/// it has none.
std::string HostCpuName();

}  // namespace fusion
