#include "core/bundle/measured/measurements.h"

#include <algorithm>
#include <cfloat>

#include "core/base/statistics/quantile.h"

namespace fusion {
namespace {

void AddDevice(const std::string& device, std::vector<std::string>* out) {
  if (device.empty()) return;
  std::erase(*out, device);
  out->insert(out->begin(), device);
  if (out->size() > PlanMeasurements::kMaxDevices) out->resize(PlanMeasurements::kMaxDevices);
}

}  // namespace

void AddCalls(int64_t calls, MeasuredTimes* out) {
  out->calls = calls > INT64_MAX - out->calls ? INT64_MAX : out->calls + calls;
}

void AddNewest(const std::vector<double>& samples_us, size_t most, MeasuredTimes* out) {
  for (double sample : samples_us) {
    // Times below FLT_MIN are shorter than any clock can measure.
    out->samples_us.push_back(std::max(static_cast<float>(sample), FLT_MIN));
  }
  KeepNewest(most, out);
}

void KeepNewest(size_t most, MeasuredTimes* out) {
  const size_t kept = out->samples_us.size();
  if (kept <= most) return;
  out->samples_us.erase(out->samples_us.begin(),
                        out->samples_us.end() - static_cast<std::ptrdiff_t>(most));
}

int64_t AddReport(const LatencyReport& report, const Plan& plan, int64_t now_ms,
                  PlanMeasurements* out) {
  Digest kernels = LaunchedKernels(plan);
  if (out->kernels != kernels) *out = PlanMeasurements{.kernels = kernels};
  size_t share = PlanMeasurements::kMaxSamplesOfPlan / std::max<size_t>(plan.launches.size(), 1);
  size_t most = std::clamp(share, PlanMeasurements::kMinSamples, PlanMeasurements::kMaxSamples);
  int64_t added = 0;
  auto add = [&](const std::vector<double>& samples_us, int64_t calls, size_t kept,
                 MeasuredTimes* times) {
    auto samples = static_cast<int64_t>(samples_us.size());
    AddCalls(std::max(calls, samples), times);
    if (report.threads != plan.threads) return;
    AddNewest(samples_us, kept, times);
    added += samples;
  };
  for (const LaunchLatency& launch : report.launches) {
    add(launch.samples_us, launch.calls, most, &out->launches[launch.launch]);
  }
  add(report.run_samples_us, report.runs, PlanMeasurements::kMaxSamples, &out->runs);
  AddDevice(report.device, &out->devices);
  out->last_report_unix_ms = std::max(now_ms, out->last_report_unix_ms);
  return added;
}

LatencySummary Summarise(const std::vector<const MeasuredTimes*>& times) {
  MeasuredTimes all;
  for (const MeasuredTimes* part : times) {
    AddCalls(part->calls, &all);
    all.samples_us.insert(all.samples_us.end(), part->samples_us.begin(), part->samples_us.end());
  }
  LatencySummary out{.calls = all.calls, .samples = static_cast<int64_t>(all.samples_us.size())};
  if (all.samples_us.empty()) return out;
  std::vector<float>& sorted = all.samples_us;
  std::sort(sorted.begin(), sorted.end());
  out.median_us = QuantileOfSorted(sorted, 0.5);
  out.p10_us = QuantileOfSorted(sorted, 0.1);
  out.p90_us = QuantileOfSorted(sorted, 0.9);
  out.min_us = static_cast<double>(sorted.front());
  return out;
}

int64_t ChargedBytes(const PlanMeasurements& measurements) {
  constexpr int64_t kOverheadBytes = 512;
  constexpr int64_t kLaunchBytes = 96;  // a node of the map
  auto samples = static_cast<int64_t>(measurements.runs.samples_us.size());
  for (const auto& [launch, times] : measurements.launches) {
    samples += static_cast<int64_t>(times.samples_us.size());
  }
  int64_t bytes = kOverheadBytes + samples * static_cast<int64_t>(sizeof(float)) +
                  static_cast<int64_t>(measurements.launches.size()) * kLaunchBytes;
  for (const std::string& device : measurements.devices) {
    bytes += static_cast<int64_t>(device.size() + sizeof(device));
  }
  return bytes;
}

}  // namespace fusion
