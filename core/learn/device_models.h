#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "core/base/threads/cancel.h"
#include "core/bundle/measured/accuracy.h"
#include "core/learn/epoch_trial.h"
#include "core/learn/observations.h"

namespace fusion {

/// Machines in DeviceAccuracy::machines, those with factors farthest from 1.
inline constexpr size_t kMaxMachines = 64;
/// Upper bound of the memory that FitDevices needs, in bytes.
inline constexpr int64_t kFitBytes = kMaxReadTimings * 1024;

/// Measured runs of whole plans.
using PlansOfDevices = std::map<TimedDevice, std::vector<MeasuredPlan>>;

/// Compares timings with their estimates and fits constants to them (FitDevice), for each kind of
/// device. `keys`: of timings, the latest report first. `tenant`: only timings of its callers and
/// of the server itself count; others' are as if they were not there. `plans`: runs of whole plans,
/// by device. Devices with most timings first. Reads all keys, or until kMaxReadTimings count; the
/// fits of 2,000 kernels take about a second (measured). kCancelled or kDeadlineExceeded if
/// `cancel` ends; a fit is not interrupted.
absl::StatusOr<std::vector<DeviceAccuracy>> FitDevices(const std::vector<Digest>& keys,
                                                       const ReadTimings& read,
                                                       const PlansOfDevices& plans,
                                                       std::string_view tenant,
                                                       const CancelToken& cancel);

}  // namespace fusion
