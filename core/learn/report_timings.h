#pragma once

#include <string_view>
#include <vector>

#include "core/bundle/measured/kernel_timings.h"
#include "core/bundle/report.h"
#include "core/cache/store.h"

namespace fusion {

/// The times of kernels in `report` about `stored`, one entry for each kernel that was measured.
/// `report` must have passed CheckFits. `tenant`, `trusted`: of the caller. Empty if the report is
/// about another number of threads than the plan's. Launches whose groups have no terms
/// (PlanGroup::form) are left out. Of each kernel up to KernelTimings::kMaxSamples are kept, as
/// many of each launch, the newest.
std::vector<KernelTimings> TimingsOf(const LatencyReport& report, const StoredPlan& stored,
                                     std::string_view tenant, bool trusted, int64_t now_ms);

}  // namespace fusion
