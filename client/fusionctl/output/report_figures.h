#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/bundle/report.h"

namespace fusion {

/// A sentence, without a period, that the list may be incomplete: if there are kMaxListedPlans
/// reports. Else empty.
std::string CutNote(const std::vector<PlanReport>& plans);

// Figures that `fusionctl report` derives from a report, for its table and its HTML page.

/// Estimated time with one kernel per node, divided by the estimated time as planned. nullopt
/// without estimates.
std::optional<double> EstimatedSpeedup(const KernelReport& kernel);
std::optional<double> EstimatedSpeedup(const PlanReport& plan);

/// Bytes of activations that fusion saves per inference; negative if it moves more.
int64_t TrafficSavedBytes(const KernelReport& kernel);

/// Measured microseconds of all launches of the kernel in one inference; 0 if it was not measured.
double MeasuredUs(const KernelReport& kernel);

std::string MeasuredText(const LatencySummary& measured);  // "707 us", "-"
std::string SpeedupText(std::optional<double> speedup);    // "2.31 x", "-"
std::string BytesText(int64_t bytes);                      // "-1.50 MiB"
std::string SavedPartText(int64_t bytes, int64_t whole);   // "78.4 %", "-"
std::string ReportAge(const PlanReport& plan);             // "3 min"
std::string LaunchesText(int64_t launches);                // "1 launch", "9 launches"

}  // namespace fusion
