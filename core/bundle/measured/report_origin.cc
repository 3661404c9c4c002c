#include "core/bundle/measured/report_origin.h"

#include <algorithm>

namespace fusion {
namespace {

double TimeAtQuantile(double quantile, const TimesSummary& s) {
  auto between = [&](double from, double to, double low_us, double high_us) {
    return low_us + (high_us - low_us) * (quantile - from) / (to - from);
  };
  if (quantile < 0.1) return between(0, 0.1, s.min_us, s.p10_us);
  if (quantile < 0.5) return between(0.1, 0.5, s.p10_us, s.p50_us);
  if (quantile < 0.9) return between(0.5, 0.9, s.p50_us, s.p90_us);
  return s.p90_us;
}

}  // namespace

std::vector<double> SamplesOf(const TimesSummary& summary, double most_us) {
  const auto count = static_cast<size_t>(std::min(summary.n, kSummarySamples));
  std::vector<double> sorted(count);
  size_t tail = 0;
  double body_us = 0;
  for (size_t i = 0; i < count; ++i) {
    const double quantile = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
    sorted[i] = TimeAtQuantile(quantile, summary);
    if (quantile > 0.9) {
      ++tail;
    } else {
      body_us += sorted[i];
    }
  }
  if (tail > 0) {
    const double rest_us = summary.mean_us * static_cast<double>(count) - body_us;
    const double long_us = rest_us / static_cast<double>(tail);
    std::fill(sorted.end() - static_cast<std::ptrdiff_t>(tail), sorted.end(),
              std::clamp(long_us, summary.p90_us, std::max(most_us, summary.p90_us)));
  }
  std::vector<double> out;
  for (size_t low = 0, high = count; low < high;) {
    out.push_back(sorted[low++]);
    if (low < high) out.push_back(sorted[--high]);
  }
  return out;
}

}  // namespace fusion
