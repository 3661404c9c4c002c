#pragma once

#include <vector>

namespace fusion {

/// The median of samples and its 95 % interval.
struct MedianInterval {
  double median = 0;
  double low = 0;
  double high = 0;
};

/// With the interval from order statistics: no assumption about the distribution of the samples,
/// which must not be none. Of fewer than six samples the interval is their range.
MedianInterval MedianOf(std::vector<double> samples);

/// a[i] / b[i]; as many of both.
std::vector<double> Ratios(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace fusion
