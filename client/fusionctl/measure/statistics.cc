#include "client/fusionctl/measure/statistics.h"

#include <algorithm>
#include <random>

namespace fusion {

MedianInterval BootstrapMedian(const std::vector<double>& samples) {
  constexpr int kDraws = 1000;
  MedianInterval out;
  out.median = Quantile(samples, 0.5);
  std::mt19937_64 random(samples.size());  // the same every time
  std::vector<double> drawn(samples.size());
  std::vector<double> medians;
  for (int i = 0; i < kDraws; ++i) {
    for (double& value : drawn) value = samples[random() % samples.size()];
    auto middle = drawn.begin() + static_cast<std::ptrdiff_t>(drawn.size() / 2);
    std::nth_element(drawn.begin(), middle, drawn.end());
    bool odd = drawn.size() % 2 != 0;
    medians.push_back(odd ? *middle : (*middle + *std::max_element(drawn.begin(), middle)) / 2);
  }
  out.low = Quantile(medians, 0.025);
  out.high = Quantile(medians, 0.975);
  return out;
}

}  // namespace fusion
