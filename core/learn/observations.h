#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/threads/cancel.h"
#include "core/benefit/calibrate/fit.h"
#include "core/bundle/measured/accuracy.h"
#include "core/bundle/measured/kernel_timings.h"

namespace fusion {

/// Timings that are fitted, the newest: of one device, and of all.
inline constexpr int64_t kMaxFittedTimings = 2000;
inline constexpr int64_t kMaxReadTimings = 8000;

/// Parts into which kernels are divided, for errors of kernels that a fit has not seen. Kernels of
/// models with one name, models that share a kernel, and alternatives of one choice are in one
/// part. If that joins all of them, kernels are divided regardless of their models.
inline constexpr size_t kFolds = 5;

/// Measured times of a kernel by one voter, for a fit.
struct Observation {
  TimingRecord record;
  std::string model;   // empty: unknown
  std::string choice;  // KernelTimings::choice in hex; empty: none
  std::string bound;   // as PlanGroup::bound, of the plan that was reported
  std::string machine;
  double clock_ghz = 0;  // as KernelTimings::clock_ghz
  std::string tenant;
  size_t fold = 0;  // 0..kFolds - 1: the part that holds it back
};

/// The observations of one kind of device.
struct DeviceObservations {
  std::vector<Observation> observations;
  bool complete = true;  // false: there are more than are read
};

/// Reads the timings with a key; nullopt: there are none.
using ReadTimings = std::function<std::optional<KernelTimings>(const Digest& key)>;
/// Where timings are read from. Thread-safe.
struct TimingSource {
  std::function<std::vector<Digest>()> keys;  // the latest report first
  ReadTimings read;
};
/// Whether the timings count.
using CountsTimings = std::function<bool(const KernelTimings& timings)>;

/// Timings of `tenant` and of the server itself.
CountsTimings TimingsForTenant(std::string_view tenant);
/// Timings that may change plans of `scope`: of that tenant and of the server; with an empty scope,
/// which is that of shared plans, those of trusted callers and of the server.
CountsTimings TimingsForScope(std::string_view scope);

/// The observations by device, with their folds. `keys`: of timings, the latest report first. Reads
/// all keys, or until kMaxReadTimings count. kCancelled or kDeadlineExceeded if `cancel` ends.
absl::StatusOr<std::map<TimedDevice, DeviceObservations>> ReadObservations(
    const std::vector<Digest>& keys, const ReadTimings& read, const CountsTimings& counts,
    const CancelToken& cancel);

/// The summary of absolute errors (|ln|).
ErrorSummary SummariseErrors(std::vector<double> errors);

}  // namespace fusion
