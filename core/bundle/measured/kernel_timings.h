#pragma once

#include <cstdint>
#include <string>

#include "core/bundle/cost_terms.h"
#include "core/bundle/measured/measurements.h"

namespace fusion {

/// The kind of device that constants are fitted for.
struct TimedDevice {
  std::string target;  // name of the device spec: Plan::target
  std::string isa;     // of the kernel
  int threads = 1;

  auto operator<=>(const TimedDevice&) const = default;
};

/// What one voter measured of one kernel. A plain value of bounded size.
struct KernelTimings {
  /// Newest samples that are kept.
  static constexpr size_t kMaxSamples = 64;

  TimedDevice device;
  Digest kernel;
  std::string machine;     // LatencyReport::device of the reports
  std::string tenant;      // of the caller who reported; empty: this server itself
  /// The caller has the role "trusted-report": the times count for plans that tenants share.
  bool trusted = false;
  /// Names a set of alternatives, such as tilings of one kernel: equal for kernels that compute the
  /// same. All 0: none is known.
  Digest choice;
  std::string model_name;  // of the plan that was measured last
  std::string bound;       // PlanGroup::bound, PlanGroup::form and PlanGroup::terms
  std::string form;
  CostTerms terms;
  MeasuredTimes times;  // of one launch
  int64_t last_report_unix_ms = 0;
  double clock_ghz = 0;  // of the cores, by the last report that says it; 0: none did

  bool operator==(const KernelTimings&) const = default;
};

/// Names the timings of a kernel by a voter: device, kernel, machine, tenant and trust.
Digest KeyOf(const KernelTimings& timings);

/// Adds samples of `more`, which has the same key, and takes over everything else from it; but an
/// unknown clock replaces no known one.
void AddTimings(const KernelTimings& more, KernelTimings* out);

/// Bytes that the timings count against a budget in memory.
int64_t ChargedBytes(const KernelTimings& timings);

}  // namespace fusion
