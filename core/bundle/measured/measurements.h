#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/bundle/report.h"

namespace fusion {

/// The newest measured times of one launch, or of whole runs, and the total number of calls.
struct MeasuredTimes {
  int64_t calls = 0;              // total, with any number of threads; saturates
  std::vector<float> samples_us;  // oldest first

  bool operator==(const MeasuredTimes&) const = default;
};

/// Adds calls; saturates.
void AddCalls(int64_t calls, MeasuredTimes* out);
/// Adds samples in microseconds and keeps the newest `most`.
void AddNewest(const std::vector<double>& samples_us, size_t most, MeasuredTimes* out);
/// Keeps the newest `most` samples.
void KeepNewest(size_t most, MeasuredTimes* out);

/// Accumulated reports about one plan, of bounded size. A plain value.
struct PlanMeasurements {
  /// Samples kept per launch: kMaxSamplesOfPlan / launches, but at least kMinSamples and at most
  /// kMaxSamples. For whole runs: kMaxSamples.
  static constexpr size_t kMaxSamples = 256;
  static constexpr size_t kMinSamples = 16;
  static constexpr size_t kMaxSamplesOfPlan = 1 << 16;
  static constexpr size_t kMaxDevices = 16;

  Digest kernels;                         // LaunchedKernels of the measured plan
  std::map<int, MeasuredTimes> launches;  // by position in Plan::launches; only measured ones
  MeasuredTimes runs;                     // whole runs
  std::vector<std::string> devices;       // that sent reports, the newest first
  int64_t last_report_unix_ms = 0;

  bool operator==(const PlanMeasurements&) const = default;
};

/// Adds `report` to `*out` and returns the number of added samples. `report` must have passed
/// CheckFits (core/learn) for `plan`. `now_ms`: Unix time. If report.threads differs from
/// plan.threads, only calls are counted: the samples are not comparable with the plan's estimates.
/// If `*out` has measurements of other kernels (PlanMeasurements::kernels), it is cleared first,
/// because positions refer to other launches.
int64_t AddReport(const LatencyReport& report, const Plan& plan, int64_t now_ms,
                  PlanMeasurements* out);

/// Summary over all samples of `times` together.
LatencySummary Summarise(const std::vector<const MeasuredTimes*>& times);

/// Bytes that the measurements count against a budget in memory.
int64_t ChargedBytes(const PlanMeasurements& measurements);

}  // namespace fusion
