#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/check.h"

namespace fusion {

/// The value below which the fraction `part` (0..1) of the samples lies, interpolated linearly
/// between neighbours; 0.5 gives the median. `sorted`: ascending, not empty.
template <typename T>
double QuantileOfSorted(const std::vector<T>& sorted, double part) {
  FUSION_CHECK(!sorted.empty(), "a quantile of something");
  double rank = part * static_cast<double>(sorted.size() - 1);
  auto below = static_cast<size_t>(rank);
  size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(static_cast<double>(sorted[below]), static_cast<double>(sorted[above]),
                   rank - static_cast<double>(below));
}

/// The same for samples in any order.
inline double Quantile(std::vector<double> samples, double part) {
  std::sort(samples.begin(), samples.end());
  return QuantileOfSorted(samples, part);
}

}  // namespace fusion
