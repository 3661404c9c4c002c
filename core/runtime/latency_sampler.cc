#include "core/runtime/latency_sampler.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fusion {
namespace {

// Below the 0.5 % that is promised.
constexpr double kShare = 0.0025;

// A clock read delays the run around it by this many times its own duration, above all the other
// threads at the end of a launch. 1.4 us for 8 launches on two threads, of which 0.2 us are clock
// reads (Intel family 6 model 85, 2026-11-22; redo: executor_bench).
constexpr double kHeldUp = 8;

// Runs before the first timed one: they warm up caches and clocks. Chosen, not measured: later runs
// outweigh the first, and a model that runs a few times only is timed at all.
constexpr int64_t kFirst = 8;

// Upper bound of the interval, even if bookkeeping once took very long.
constexpr int64_t kMaxInterval = int64_t{1} << 20;

constexpr size_t kMaxRows = 256;
constexpr size_t kMinRows = 16;
constexpr size_t kMaxValues = size_t{1} << 18;  // of all rows: 1 MiB

}  // namespace

LatencySampler::LatencySampler(size_t launches, Nanoseconds clock_read)
    : launches_(launches),
      max_rows_(std::clamp(kMaxValues / (launches + 1), kMinRows, kMaxRows)),
      clock_ns_(kHeldUp * static_cast<double>(clock_read.count()) *
                static_cast<double>(launches + 2)),
      interval_(kFirst),
      until_next_(kFirst) {
  rows_.reserve(capacity());
}

bool LatencySampler::Begin() {
  if (stopped_ || --until_next_ > 0) return false;
  until_next_ = interval_;
  return true;
}

void LatencySampler::Add(const std::vector<Nanoseconds>& boundaries) {
  if (rows_.size() == capacity()) Thin();
  for (size_t i = 0; i < launches_; ++i) {
    rows_.push_back(static_cast<float>(ToMicroseconds(boundaries[i + 1] - boundaries[i])));
  }
  Nanoseconds whole = boundaries.back() - boundaries.front();
  rows_.push_back(static_cast<float>(ToMicroseconds(whole)));
  auto run_ns = std::max(static_cast<double>(whole.count()), 1.0);
  shortest_run_ns_ = shortest_run_ns_ == 0 ? run_ns : std::min(shortest_run_ns_, run_ns);
}

void LatencySampler::Charge(Nanoseconds bookkeeping) {
  double cost = clock_ns_ + static_cast<double>(std::max<int64_t>(bookkeeping.count(), 0));
  cost_ns_ = cost_ns_ == 0 ? cost : cost_ns_ + (cost - cost_ns_) / 8;
  double runs = std::ceil(cost_ns_ / (kShare * std::max(shortest_run_ns_, 1.0)));
  affordable_ = static_cast<int64_t>(std::clamp(runs, 1.0, static_cast<double>(kMaxInterval)));
  interval_ = affordable_ * thinning_;
  until_next_ = interval_;
}

// Drops every second row, and halves the rate of new ones.
void LatencySampler::Thin() {
  size_t width = launches_ + 1;
  size_t kept = 0;
  for (size_t row = 1; row * width < rows_.size(); row += 2, ++kept) {
    std::copy_n(rows_.begin() + static_cast<std::ptrdiff_t>(row * width), width,
                rows_.begin() + static_cast<std::ptrdiff_t>(kept * width));
  }
  rows_.resize(kept * width);
  thinning_ *= 2;
}

LatencyRows LatencySampler::Take(std::vector<float> memory) {
  memory.clear();
  rows_.swap(memory);
  LatencyRows out{.runs = std::exchange(runs_, 0), .launches = launches_, .us = std::move(memory)};
  if (thinning_ > 1) {
    thinning_ = 1;
    interval_ = affordable_;
    until_next_ = std::min(until_next_, interval_);
  }
  return out;
}

LatencySamples ByLaunch(const LatencyRows& rows) {
  LatencySamples out;
  out.runs = rows.runs;
  out.launch_us.resize(rows.launches);
  size_t count = rows.us.size() / (rows.launches + 1);
  out.run_us.reserve(count);
  for (std::vector<double>& launch : out.launch_us) launch.reserve(count);
  for (size_t at = 0; at < rows.us.size();) {
    for (std::vector<double>& launch : out.launch_us) {
      launch.push_back(static_cast<double>(rows.us[at++]));
    }
    out.run_us.push_back(static_cast<double>(rows.us[at++]));
  }
  return out;
}

}  // namespace fusion
