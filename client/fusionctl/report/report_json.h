#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "core/bundle/report.h"

namespace fusion {

/// For --json: all plans with everything that is known and derived, the top regrets, and the fused
/// kernels that are slower than one kernel per node. Absent figures are null.
nlohmann::ordered_json ReportJson(const std::vector<PlanReport>& plans);

}  // namespace fusion
