#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/bundle/report.h"

namespace fusion {

/// A sentence, without a period, that the list may be incomplete: if there are kMaxListedPlans
/// reports. Else empty.
std::string CutNote(const std::vector<PlanReport>& plans);

// Figures that `fusionctl report` derives from a report, for all of its formats.

/// A time op by op divided by the time as planned: both measured, or both estimated.
struct Speedup {
  double factor = 1;
  bool measured = false;
  double op_by_op_us = 0;
  double fused_us = 0;
};
/// nullopt without estimates.
std::optional<Speedup> SpeedupOf(const KernelReport& kernel);  // of one launch
std::optional<Speedup> SpeedupOf(const PlanReport& plan);      // of a run
std::optional<Speedup> SpeedupOf(const SectionReport& section);

/// Estimated time with one kernel per node, divided by the estimated time as planned. nullopt
/// without estimates.
std::optional<double> EstimatedSpeedup(const KernelReport& kernel);
std::optional<double> EstimatedSpeedup(const PlanReport& plan);

/// Measured time divided by the estimate; nullopt if either is missing.
std::optional<double> MeasuredByEstimate(const KernelReport& kernel);
std::optional<double> MeasuredByEstimate(const PlanReport& plan);

/// |ln(measured / estimated)| over the measured kernels of a plan.
struct PlanAccuracy {
  size_t kernels = 0;  // that were measured
  double median = 0;
  double worst = 0;
};
PlanAccuracy AccuracyOf(const PlanReport& plan);

/// A kernel that took longer than something promised.
struct Regret {
  const PlanReport* plan = nullptr;
  const KernelReport* kernel = nullptr;
  double promised_us = 0;  // of a launch
  bool measured = false;   // promised_us is a measured time
  double lost_us = 0;      // in all reported calls together, > 0
};
/// The kernels that lost most against their estimates, at most `most`, the largest loss first.
/// Points into `plans`.
std::vector<Regret> TopRegrets(const std::vector<PlanReport>& plans, size_t most);
/// Of fused plans the kernels of several nodes that are over 5 % slower than one kernel per node:
/// than what was measured, or else estimated. As TopRegrets.
std::vector<Regret> SlowerThanParts(const std::vector<PlanReport>& plans, size_t most);

/// True for a plan that a report of another plan in `plans` compares itself with.
bool IsBaseline(const PlanReport& plan, const std::vector<PlanReport>& plans);

/// Bytes of activations that fusion saves per inference; negative if it moves more.
int64_t TrafficSavedBytes(const KernelReport& kernel);

/// Measured microseconds of all launches of the kernel in one inference; 0 if it was not measured.
double MeasuredUs(const KernelReport& kernel);

std::string MeasuredText(const LatencySummary& measured);        // "707 us", "-"
std::string FactorText(std::optional<double> factor);            // "2.31 x", "-"
std::string SpeedupText(const std::optional<Speedup>& speedup);  // "2.31 x", "~2.31 x", "-"
std::string OpByOpText(const std::optional<Speedup>& speedup);   // "707 us", "~707 us", "-"
std::string BytesText(int64_t bytes);                            // "-1.50 MiB"
std::string SavedPartText(int64_t bytes, int64_t whole);         // "78.4 %", "-"
std::string ReportAge(const PlanReport& plan);                   // "3 min"
std::string LaunchesText(int64_t launches);                      // "1 launch", "9 launches"

}  // namespace fusion
