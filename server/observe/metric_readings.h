#pragma once

#include <prometheus/metric_family.h>

#include <vector>

#include "server/admission/tenant_counts.h"
#include "server/observe/snapshot.h"

namespace fusion {

/// Adds the families whose values are read from `now` and `tenants` rather than counted.
void AddReadings(const ServerSnapshot& now, const TenantCounts& tenants,
                 std::vector<prometheus::MetricFamily>* families);

}  // namespace fusion
