#include "core/benefit/calibrate/robust.h"

#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "core/base/statistics/quantile.h"

namespace fusion {

double WeightedMedian(std::vector<Weighted> values) {
  FUSION_CHECK(!values.empty(), "a median of something");
  std::sort(values.begin(), values.end(),
            [](const Weighted& a, const Weighted& b) { return a.value < b.value; });
  double total = 0;
  for (const Weighted& v : values) total += v.weight;
  double below = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    below += values[i].weight;
    // Weights are sums of fractions: take what is equal but for rounding as equal.
    if (std::abs(below - total / 2) <= 1e-12 * total && i + 1 < values.size()) {
      return (values[i].value + values[i + 1].value) / 2;
    }
    if (below > total / 2) return values[i].value;
  }
  return values.back().value;
}

double HodgesLehmann(std::vector<double> values) {
  FUSION_CHECK(!values.empty(), "a location of something");
  std::sort(values.begin(), values.end());
  if (values.size() > kMaxPairedValues) {
    std::vector<double> picked;
    for (size_t i = 0; i < kMaxPairedValues; ++i) {
      const double part = (static_cast<double>(i) + 0.5) / static_cast<double>(kMaxPairedValues);
      picked.push_back(QuantileOfSorted(values, part));
    }
    values = std::move(picked);
  }
  std::vector<double> means;
  means.reserve(values.size() * (values.size() + 1) / 2);
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t j = i; j < values.size(); ++j) means.push_back((values[i] + values[j]) / 2);
  }
  return Quantile(std::move(means), 0.5);
}

bool PageHinkley::Add(double value) {
  ++count_;
  if (first_.size() < kWarmUp) {
    first_.push_back(value);
    mean_ = Quantile(first_, 0.5);
    return false;
  }
  const double off = std::clamp(value - mean_, -limit_, limit_);
  mean_ += off / static_cast<double>(count_);
  up_ = std::max(0.0, up_ + off - tolerance_);
  down_ = std::max(0.0, down_ - off - tolerance_);
  if (up_ <= threshold_ && down_ <= threshold_) return false;
  *this = PageHinkley(tolerance_, threshold_, limit_);
  return true;
}

}  // namespace fusion
