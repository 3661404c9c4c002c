#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/bundle/measured/accuracy.h"
#include "core/bundle/report.h"
#include "server/pages/markup.h"

namespace fusion {

/// Rows of the list of kernels.
inline constexpr size_t kKernelRows = 200;

/// Kernels with reported latencies, those that take most time first: estimates beside measured
/// times. `reports`: of the plans with the latest reports; `limit`: how many were asked for.
Markup KernelsContent(const std::vector<PlanReport>& reports, size_t limit);

/// One kernel: its check against the evaluator, the compiler's command, schedule and source.
Markup KernelContent(const KernelArtifact& kernel);

/// How far estimates are from measured times, by device, and the constants that would fit better.
/// `tenants`: those whose reports can be chosen, in links; `tenant`: the chosen one.
Markup AccuracyContent(const std::vector<DeviceAccuracy>& devices,
                       const std::vector<std::string>& tenants, const std::string& tenant);

}  // namespace fusion
