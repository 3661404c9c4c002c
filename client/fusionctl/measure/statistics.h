#pragma once

#include <vector>

#include "core/base/statistics/median_interval.h"
#include "core/base/statistics/quantile.h"

namespace fusion {

/// The median with its 95 % interval by percentile bootstrap: medians of resamples with
/// replacement. Needs at least one sample. Deterministic: equal samples give equal intervals.
MedianInterval BootstrapMedian(const std::vector<double>& samples);

}  // namespace fusion
