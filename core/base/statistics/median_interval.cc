#include "core/base/statistics/median_interval.h"

#include <algorithm>
#include <cmath>

#include "core/base/check.h"

namespace fusion {

MedianInterval MedianOf(std::vector<double> samples) {
  FUSION_CHECK(!samples.empty(), "a median of something");
  std::sort(samples.begin(), samples.end());
  auto n = static_cast<double>(samples.size());
  auto at = [&samples](double rank) {  // ranks count from 1
    auto last = static_cast<double>(samples.size());
    return samples[static_cast<size_t>(std::clamp(rank, 1.0, last)) - 1];
  };
  MedianInterval out;
  out.median = (at(std::floor((n + 1) / 2)) + at(std::ceil((n + 1) / 2))) / 2;
  // The number of samples below the true median is binomial(n, 1/2); 1.96 sd either way.
  double half = 1.96 * std::sqrt(n) / 2;
  out.low = at(std::floor(n / 2 - half));
  out.high = at(std::ceil(n / 2 + half + 1));
  return out;
}

std::vector<double> Ratios(const std::vector<double>& a, const std::vector<double>& b) {
  FUSION_CHECK(a.size() == b.size(), "samples in pairs");
  std::vector<double> out;
  for (size_t i = 0; i < a.size(); ++i) out.push_back(a[i] / b[i]);
  return out;
}

}  // namespace fusion
