#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/check.h"

namespace fusion {

/// The value below which a part of the samples lies, 0..1, interpolated between neighbours; 0.5 is
/// the median. `sorted`: ascending, at least one.
template <typename T>
double QuantileOfSorted(const std::vector<T>& sorted, double part) {
  FUSION_CHECK(!sorted.empty(), "a quantile of something");
  double rank = part * static_cast<double>(sorted.size() - 1);
  auto below = static_cast<size_t>(rank);
  size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(static_cast<double>(sorted[below]), static_cast<double>(sorted[above]),
                   rank - static_cast<double>(below));
}

/// The same of samples in any order.
inline double Quantile(std::vector<double> samples, double part) {
  std::sort(samples.begin(), samples.end());
  return QuantileOfSorted(samples, part);
}

}  // namespace fusion
