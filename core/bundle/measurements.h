#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/bundle/report.h"

namespace fusion {

/// The newest measured times of one thing, and how often it ran.
struct MeasuredTimes {
  int64_t calls = 0;              // ever, with any number of threads
  std::vector<float> samples_us;  // oldest first

  bool operator==(const MeasuredTimes&) const = default;
};

/// Everything that is kept of the reports about one plan: bounded, however many come. A plain
/// value.
struct PlanMeasurements {
  /// Samples of one launch that are kept: this many, fewer for plans of more than
  /// kMaxSamplesOfPlan / kMaxSamples launches, but never below kMinSamples.
  static constexpr size_t kMaxSamples = 256;
  static constexpr size_t kMinSamples = 16;
  static constexpr size_t kMaxSamplesOfPlan = 1 << 16;
  static constexpr size_t kMaxDevices = 16;

  Digest kernels;                         // LaunchedKernels of the plan that was measured
  std::map<int, MeasuredTimes> launches;  // those that were measured, by position
  MeasuredTimes runs;                     // whole ones
  std::vector<std::string> devices;       // that reported, the newest first
  int64_t last_report_unix_ms = 0;

  bool operator==(const PlanMeasurements&) const = default;
};

/// Adds a report that CheckFits (core/learn) has found sound for `plan`; gives the number of
/// samples it has added. `now_ms`: Unix time. Of runs with another number of threads than the plan
/// was made for, calls are counted but no sample is added: beside the plan's estimates they would
/// say nothing. What is known of other kernels goes first: positions mean other things.
int64_t AddReport(const LatencyReport& report, const Plan& plan, int64_t now_ms,
                  PlanMeasurements* out);

/// Count and spread of one thing, or of several taken together.
LatencySummary Summarise(const std::vector<const MeasuredTimes*>& times);

/// Bytes of memory that the measurements are charged.
int64_t ChargedBytes(const PlanMeasurements& measurements);

}  // namespace fusion
