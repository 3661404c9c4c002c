#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/bundle/report.h"

namespace fusion {

/// One sentence, without a period, if there are kMaxListedPlans and the service may have more; else
/// nothing.
std::string CutNote(const std::vector<PlanReport>& plans);

// What `fusionctl report` derives from a report, the same in its table and on its page.

/// Time with one kernel per node over time as planned, both estimated. Nothing without estimates.
std::optional<double> EstimatedSpeedup(const KernelReport& kernel);
std::optional<double> EstimatedSpeedup(const PlanReport& plan);

/// Bytes of activations that an inference does not move. Negative where it moves more.
int64_t TrafficSavedBytes(const KernelReport& kernel);

/// Microseconds of an inference that the kernel took, all launches; 0 where it was not measured.
double MeasuredUs(const KernelReport& kernel);

std::string MeasuredText(const LatencySummary& measured);  // "707 us", "-"
std::string SpeedupText(std::optional<double> speedup);    // "2.31 x", "-"
std::string BytesText(int64_t bytes);                      // "-1.50 MiB"
std::string SavedPartText(int64_t bytes, int64_t whole);   // "78.4 %", "-"
std::string ReportAge(const PlanReport& plan);             // "3 min"
std::string LaunchesText(int64_t launches);                // "1 launch", "9 launches"

}  // namespace fusion
