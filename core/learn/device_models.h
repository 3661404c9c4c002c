#pragma once

#include <string_view>
#include <vector>

#include "core/base/threads/cancel.h"
#include "core/bundle/accuracy.h"
#include "core/cache/record_store.h"

namespace fusion {

/// Timings that a fit reads, the newest: of one device, and of all.
inline constexpr int64_t kMaxFittedTimings = 4000;
inline constexpr int64_t kMaxReadTimings = 16'000;
/// Machines in DeviceAccuracy::machines, those with factors farthest from 1.
inline constexpr size_t kMaxMachines = 64;
/// At most what FitDevices needs of memory.
inline constexpr int64_t kFitBytes = kMaxReadTimings * 2048;

/// Parts into which kernels are divided, by the name of their model, for ErrorSummary of kernels
/// that a fit has not seen. Kernels of models without a name are divided one by one.
inline constexpr int kFolds = 5;

/// Compares the timings with their estimates and fits constants to them (FitDevice), for each kind
/// of device. `tenant`: only timings of its callers and of the server itself count; others' are as
/// if they were not there. Devices with most timings first. Reads every timing once; takes about 2
/// ms for a kernel. kCancelled or kDeadlineExceeded if `cancel` ends. Thread-safe as `timings` is.
absl::StatusOr<std::vector<DeviceAccuracy>> FitDevices(TimingStore& timings,
                                                       std::string_view tenant,
                                                       const CancelToken& cancel);

}  // namespace fusion
