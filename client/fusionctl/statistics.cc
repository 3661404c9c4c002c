#include "client/fusionctl/statistics.h"

#include <algorithm>
#include <cmath>

#include "core/base/check.h"

namespace fusion {

MedianInterval MedianOf(std::vector<double> samples) {
  FUSION_CHECK(!samples.empty(), "a median of something");
  std::sort(samples.begin(), samples.end());
  auto n = static_cast<double>(samples.size());
  auto at = [&samples](double rank) {  // ranks count from 1
    double last = static_cast<double>(samples.size());
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

}  // namespace fusion
