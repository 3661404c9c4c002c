#pragma once

#include <vector>

namespace fusion {

/// The median of samples and its 95 % interval from order statistics: no assumption about their
/// distribution. Of fewer than six samples the interval is their range.
struct MedianInterval {
  double median = 0;
  double low = 0;
  double high = 0;
};

/// `samples` must not be empty.
MedianInterval MedianOf(std::vector<double> samples);

}  // namespace fusion
