#pragma once

#include <vector>

namespace fusion {

/// The median of samples and its 95 % confidence interval.
struct MedianInterval {
  double median = 0;
  double low = 0;
  double high = 0;
};

/// Computes the interval from order statistics, without assumptions about the distribution. There
/// must be at least one sample. With fewer than six samples the interval is their range.
MedianInterval MedianOf(std::vector<double> samples);

/// a[i] / b[i]. Both must have the same size.
std::vector<double> Ratios(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace fusion
