#include "core/bundle/measurements.h"

#include <algorithm>
#include <cfloat>

namespace fusion {
namespace {

// Rounded to the nearest, at positions that exist.
double Quantile(const std::vector<float>& sorted, double part) {
  auto at = static_cast<size_t>(part * static_cast<double>(sorted.size() - 1) + 0.5);
  return static_cast<double>(sorted[at]);
}

double Median(const std::vector<float>& sorted) {
  size_t half = sorted.size() / 2;
  auto upper = static_cast<double>(sorted[half]);
  if (sorted.size() % 2 == 1) return upper;
  return (static_cast<double>(sorted[half - 1]) + upper) / 2;
}

void AddCalls(int64_t calls, MeasuredTimes* out) {
  out->calls = calls > INT64_MAX - out->calls ? INT64_MAX : out->calls + calls;
}

void AddSamples(const std::vector<double>& samples_us, int64_t calls, size_t most,
                MeasuredTimes* out) {
  AddCalls(std::max(calls, static_cast<int64_t>(samples_us.size())), out);
  for (double sample : samples_us) {
    // What a float cannot hold any more is below what any clock tells.
    out->samples_us.push_back(std::max(static_cast<float>(sample), FLT_MIN));
  }
  size_t kept = out->samples_us.size();
  if (kept > most) {
    out->samples_us.erase(out->samples_us.begin(),
                          out->samples_us.end() - static_cast<std::ptrdiff_t>(most));
  }
}

void AddDevice(const std::string& device, std::vector<std::string>* out) {
  if (device.empty()) return;
  std::erase(*out, device);
  out->insert(out->begin(), device);
  if (out->size() > PlanMeasurements::kMaxDevices) out->resize(PlanMeasurements::kMaxDevices);
}

}  // namespace

void AddReport(const LatencyReport& report, const Digest& kernels, size_t launches, int64_t now_ms,
               PlanMeasurements* out) {
  if (out->kernels != kernels) *out = PlanMeasurements{.kernels = kernels};
  size_t share = PlanMeasurements::kMaxSamplesOfPlan / std::max<size_t>(launches, 1);
  size_t most = std::clamp(share, PlanMeasurements::kMinSamples, PlanMeasurements::kMaxSamples);
  for (const LaunchLatency& launch : report.launches) {
    AddSamples(launch.samples_us, launch.calls, most, &out->launches[launch.launch]);
  }
  AddSamples(report.run_samples_us, report.runs, PlanMeasurements::kMaxSamples, &out->runs);
  AddDevice(report.device, &out->devices);
  out->last_report_unix_ms = std::max(now_ms, out->last_report_unix_ms);
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
  out.median_us = Median(sorted);
  out.p10_us = Quantile(sorted, 0.1);
  out.p90_us = Quantile(sorted, 0.9);
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
