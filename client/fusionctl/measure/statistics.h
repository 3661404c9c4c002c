#pragma once

#include <vector>

#include "core/base/median_interval.h"
#include "core/base/quantile.h"

namespace fusion {

/// With the interval from medians of samples drawn again, with replacement (percentile bootstrap).
/// The same samples give the same interval.
MedianInterval BootstrapMedian(const std::vector<double>& samples);

}  // namespace fusion
