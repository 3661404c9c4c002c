#include "client/fusionctl/measure/bench_pairs.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "client/detect_target.h"
#include "client/fusionctl/measure/statistics.h"
#include "core/tensor/compare.h"

namespace fusion {
namespace {

constexpr double kSeconds = 5;  // of pairs, where --seconds does not say

// Profiled runs after the pairs: at least kMinProfiledRuns, for a median of each kernel; then until
// they have taken 1/kProfiledPart of the time of the pairs.
constexpr int kMinProfiledRuns = 5;
constexpr int kMaxProfiledRuns = 256;
constexpr int kProfiledPart = 4;  // see above

Nanoseconds Seconds(double seconds) {
  return std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(seconds));
}

/// Runs the two plans in pairs, so that disturbances of the machine affect both; the order within a
/// pair alternates. Returns the time of the pairs that count.
absl::StatusOr<Nanoseconds> MeasurePairs(const Arguments& arguments,
                                         const std::vector<const HostTensor*>& in,
                                         Progress* progress, BenchResult* result) {
  constexpr Nanoseconds kRedraw = std::chrono::milliseconds(100);
  int most = arguments.pairs > 0 ? arguments.pairs : kMaxBenchPairs;
  Nanoseconds begin{0};
  Nanoseconds end = Nanoseconds::max();
  Nanoseconds redraw{0};
  for (int i = -arguments.warmup; i < most; ++i) {
    Nanoseconds now = Clock::Real().Now();
    if (i == 0) begin = now;
    if (i == 0 && arguments.pairs == 0) end = now + Seconds(arguments.seconds.value_or(kSeconds));
    if (i > 0 && now >= end) break;
    if (now >= redraw) {
      redraw = now + kRedraw;
      if (i < 0) progress->Show("warming up", i + arguments.warmup, arguments.warmup);
      if (i >= 0 && arguments.pairs > 0) progress->Show("measuring, pair", i, most);
      if (i >= 0 && arguments.pairs == 0) {
        progress->Show(StrCat("measuring, ", i, " pairs, ms"), (now - begin).count() / 1000000,
                       (end - begin).count() / 1000000);
      }
    }
    Contender* first = i % 2 == 0 ? &result->fused : &result->op_by_op;
    Contender* second = i % 2 == 0 ? &result->op_by_op : &result->fused;
    RETURN_IF_ERROR(first->Run(in, i >= 0));
    RETURN_IF_ERROR(second->Run(in, i >= 0));
  }
  return Clock::Real().Now() - begin;
}

absl::Status ProfileBoth(const std::vector<const HostTensor*>& in, Nanoseconds time,
                         Progress* progress, BenchResult* result) {
  progress->Show("timing kernels");
  Nanoseconds end = Clock::Real().Now() + time;
  for (int i = 0; i < kMaxProfiledRuns; ++i) {
    if (i >= kMinProfiledRuns && Clock::Real().Now() >= end) break;
    RETURN_IF_ERROR(result->fused.Profile(in));
    RETURN_IF_ERROR(result->op_by_op.Profile(in));
  }
  return absl::OkStatus();
}

template <typename T>
std::vector<T> Newest(const std::vector<T>& samples) {
  size_t n = std::min(samples.size(), static_cast<size_t>(kMaxReportSamples));
  return {samples.end() - static_cast<std::ptrdiff_t>(n), samples.end()};
}

// The number of samples that the service stored, or why it stored none.
absl::StatusOr<int64_t> ReportTimes(const Client& client, const Contender& contender) {
  if (!contender.plan().symbols.empty()) {
    return FailedPrecondition(
        "the plan leaves dims open, and its estimates are for the largest ones");
  }
  if (!contender.plan().loops.empty()) {
    return FailedPrecondition("the plan has loops, and its estimates are for one pass");
  }
  LatencyReport report{.plan_key = contender.reply().plan_key,
                       .run_samples_us = Newest(contender.latency_us()),
                       .runs = static_cast<int64_t>(contender.latency_us().size()),
                       .threads = contender.plan().threads,
                       .device = DeviceName()};
  for (size_t i = 0; i < contender.launch_us().size(); ++i) {
    report.launches.push_back(
        {.launch = static_cast<int>(i), .samples_us = Newest(contender.launch_us()[i])});
  }
  return client.ReportLatency(report);
}

// Reporting may fail without an error of the measurement. Reports compare the fused plan with the
// times of the other, whose own report is the older one.
void ReportToService(const Client& client, BenchResult* result) {
  const absl::Status baseline = ReportTimes(client, result->op_by_op).status();
  const absl::StatusOr<int64_t> accepted = ReportTimes(client, result->fused);
  if (accepted.ok()) result->reported_samples = *accepted;
  if (!baseline.ok()) result->report_error = StrCat("op by op: ", Message(baseline));
  if (!accepted.ok()) result->report_error = Message(accepted.status());
}

}  // namespace

MedianInterval BenchResult::ratio() const {
  return BootstrapMedian(Ratios(fused.latency_us(), op_by_op.latency_us()));
}

nlohmann::ordered_json RatioJson(const MedianInterval& ratio) {
  return {{"median", ratio.median}, {"low95", ratio.low}, {"high95", ratio.high}};
}

double BenchResult::largest_difference() const {
  double out = 0;
  for (size_t i = 0; i < fused.outputs().size(); ++i) {
    out = std::max(out, Compare(fused.outputs()[i], op_by_op.outputs()[i]).max_rel);
  }
  return out;
}

absl::StatusOr<BenchResult> MeasurePlans(const Arguments& arguments, const ModelFile& file,
                                         const RunInputs& inputs, const Client& client,
                                         Progress* progress) {
  BenchResult out;
  PlanOptions plain = inputs.options;
  plain.lock = nullptr;  // of the fused plan
  plain.fusion = FusionMode::kOpByOp;
  ASSIGN_OR_RETURN(out.fused, Contender::Load(arguments, file, client, inputs.options, progress));
  ASSIGN_OR_RETURN(out.op_by_op, Contender::Load(arguments, file, client, plain, progress));
  std::vector<const HostTensor*> in = inputs.pointers();
  ASSIGN_OR_RETURN(Nanoseconds pairs, MeasurePairs(arguments, in, progress, &out));
  const bool kept = !arguments.server.empty() || !arguments.store.empty();
  const bool reports = kept && arguments.report;
  if (reports || arguments.per_kernel) {
    RETURN_IF_ERROR(ProfileBoth(in, pairs / kProfiledPart, progress, &out));
  }
  if (reports) ReportToService(client, &out);
  progress->Clear();
  return out;
}

}  // namespace fusion
