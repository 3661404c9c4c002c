#pragma once

#include <prometheus/metric_family.h>

#include <vector>

#include "server/admission/tenant_counts.h"
#include "server/observe/snapshot.h"

namespace fusion {

/// Appends the metric families whose values come from `now` and `tenants`, not from Metrics' own
/// counters.
void AddReadings(const ServerSnapshot& now, const TenantCounts& tenants,
                 std::vector<prometheus::MetricFamily>* families);

}  // namespace fusion
