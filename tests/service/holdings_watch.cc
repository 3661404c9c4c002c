#include "tests/service/holdings_watch.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/base/clock.h"
#include "core/base/text/text.h"
#include "tests/service/process_memory.h"

namespace fusion {
namespace {

constexpr size_t kTimes = 12;
constexpr double kStudentsT = 2.228;  // of kTimes - 2 degrees of freedom

nlohmann::ordered_json SlopeJson(const Slope& slope) {
  return {{"a_minute", slope.a_minute}, {"low", slope.low}, {"high", slope.high}};
}

}  // namespace

nlohmann::ordered_json Holdings::ToJson() const {
  return {{"mib", SlopeJson(mib)},
          {"fds", SlopeJson(fds)},
          {"least_fds", least_fds},
          {"most_fds", most_fds}};
}

void HoldingsWatch::Run() {
  const Nanoseconds start = Clock::Real().Now();
  for (int64_t at = 1; !over_; ++at) {
    while (!over_ && Clock::Real().Now() - start < at * std::chrono::seconds(1)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    std::error_code gone;  // it may end any moment
    std::filesystem::directory_iterator file(StrCat("/proc/", pid_, "/fd"), gone), end;
    int64_t fds = 0;
    for (; !gone && file != end; file.increment(gone)) ++fds;
    const double bytes = static_cast<double>(MemoryOf(pid_, "VmRSS"));
    samples_.push_back(
        {ToMilliseconds(Clock::Real().Now() - start) / 6e4, bytes / (int64_t{1} << 20), fds});
  }
}

void HoldingsWatch::End() {
  over_ = true;
  if (thread_.joinable()) thread_.join();
}

Holdings HoldingsWatch::Stop() {
  End();
  const std::vector<Sample> late(
      samples_.begin() + static_cast<std::ptrdiff_t>(samples_.size() / 2), samples_.end());
  Holdings out;
  if (late.empty()) return out;
  const auto [least, most] = std::minmax_element(
      late.begin(), late.end(), [](const Sample& a, const Sample& b) { return a.fds < b.fds; });
  out.least_fds = least->fds;
  out.most_fds = most->fds;
  out.mib = SlopeOf(late, [](const Sample& sample) { return sample.mib; });
  out.fds = SlopeOf(late, [](const Sample& sample) { return static_cast<double>(sample.fds); });
  return out;
}

Slope HoldingsWatch::SlopeOf(const std::vector<Sample>& samples, double (*value)(const Sample&)) {
  const size_t each = samples.size() / kTimes;
  if (each < 2) return {};
  double x[kTimes] = {}, y[kTimes] = {};
  double mean_x = 0, mean_y = 0;
  for (size_t t = 0; t < kTimes; ++t) {
    for (size_t i = t * each; i < (t + 1) * each; ++i) {
      x[t] += samples[i].minutes / static_cast<double>(each);
      y[t] += value(samples[i]) / static_cast<double>(each);
    }
    mean_x += x[t] / kTimes;
    mean_y += y[t] / kTimes;
  }
  double up = 0, along = 0;
  for (size_t t = 0; t < kTimes; ++t) {
    up += (x[t] - mean_x) * (y[t] - mean_y);
    along += (x[t] - mean_x) * (x[t] - mean_x);
  }
  const double slope = up / along;
  double off = 0;
  for (size_t t = 0; t < kTimes; ++t) {
    const double error = y[t] - mean_y - slope * (x[t] - mean_x);
    off += error * error;
  }
  const double half = kStudentsT * std::sqrt(off / (kTimes - 2) / along);
  return {slope, slope - half, slope + half};
}

}  // namespace fusion
