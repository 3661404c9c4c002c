#pragma once

#include <string>

#include "core/device/target.h"

namespace fusion {

/// The machine this process runs on, as a request describes it: CPU vendor, family and model, the
/// highest ISA level that CPU and operating system support, further features, bytes of data cache,
/// threads.
///
///   request.target = DetectTarget();
///
/// `threads`: how many will run the plan; 0: the cores this process may use (affinity mask). Cache
/// sizes come from CPUID, else from sysfs; 0 if neither tells. `isa` is empty on a machine below
/// every level we generate for.
Target DetectTarget(int threads = 0);

/// The CPU of this machine for people, as it names itself: "Intel(R) Xeon(R) Processor @ 2.50GHz".
/// Its vendor where it has no name.
std::string DeviceName();

}  // namespace fusion
