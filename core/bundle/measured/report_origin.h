#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fusion {

/// Longest ReportOrigin::id.
inline constexpr size_t kMaxReportIdBytes = 32;
/// Highest ReportOrigin::clock_ghz.
inline constexpr double kMaxClockGhz = 20;
/// Samples that were measured under more background load are not kept. Chosen, not measured: with
/// half of the machine at work for others, its shared caches, memory and clock are not those that
/// the benefit model estimates for.
inline constexpr double kMaxBackgroundLoad = 0.5;

/// Most reports of one ReportLatencies. Chosen: an hour of a fleet of three machines that report
/// once a second.
inline constexpr int64_t kMaxStreamedReports = 10'000;

/// How a report came to be. A plain value; by default nothing is known.
struct ReportOrigin {
  std::string id;              // of the report, at most kMaxReportIdBytes; empty: it has none
  double clock_ghz = 0;        // of the cores while they were measured; 0: unknown
  double background_load = 0;  // share of the machine that others used meanwhile, 0..1

  bool operator==(const ReportOrigin&) const = default;
};

/// Measured times of a runtime that keeps histograms, in microseconds.
struct TimesSummary {
  int64_t n = 0;  // launches or runs that were timed
  double mean_us = 0;
  double min_us = 0;
  double p10_us = 0;
  double p50_us = 0;
  double p90_us = 0;
};

/// Most samples that stand for a summary.
inline constexpr int64_t kSummarySamples = 16;

/// min(n, kSummarySamples) samples that stand for `summary`: the times at the quantiles
/// (i + 0.5) / count, interpolated between min, p10, p50 and p90. Those above the 0.9 quantile are
/// equal: as long as the mean needs, but at least p90 and at most `most_us`. The outermost come
/// first and the median last, so that the newest few of them are not biased. `summary.n` is at
/// least 1 and the times are in order.
std::vector<double> SamplesOf(const TimesSummary& summary, double most_us);

}  // namespace fusion
