#pragma once

#include <string>

#include "core/device/target.h"

namespace fusion {

/// The CPU of this machine: vendor, family, model, bytes of data cache and threads that it runs at
/// the same time; the rest of the target is as it is by default. Cache sizes come from CPUID, else
/// from sysfs; 0 if neither tells.
Target HostCpu();

/// The same for people, as the CPU names itself: "Intel(R) Xeon(R) Processor @ 2.50GHz". Its vendor
/// where it has no name.
std::string HostCpuName();

}  // namespace fusion
