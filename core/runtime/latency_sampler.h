#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/clock.h"

namespace fusion {

/// What some of an executor's runs took.
struct LatencySamples {
  int64_t runs = 0;            // that ended well since the samples before, timed or not
  std::vector<double> run_us;  // of the timed ones, oldest first
  // By plan launch, each as long as run_us: from the end of the launch before to its own end.
  std::vector<std::vector<double>> launch_us;
};

/// The same as it was written down: a row for each timed run, its launches, then the whole.
struct LatencyRows {
  int64_t runs = 0;
  size_t launches = 0;
  std::vector<float> us;
};
LatencySamples ByLaunch(const LatencyRows& rows);

/// Decides which runs are timed, so that timing takes less than 0.5 % of all of them, and keeps
/// what they took. Holds 256 runs at most (fewer if a run has thousands of launches); of more, it
/// keeps a part that is spread evenly over the time since Take.
///
/// Not thread-safe.
class LatencySampler {
 public:
  /// `clock_read`: what one look at the clock takes.
  LatencySampler(size_t launches, Nanoseconds clock_read);

  /// A run begins. True: it is to be timed.
  bool Begin();

  /// A run ended well.
  void CountRun() { ++runs_; }
  /// And it was timed: `boundaries` are the begin of the run and the end of each launch, in order,
  /// so launches + 1 times of one clock.
  void Add(const std::vector<Nanoseconds>& boundaries);
  /// What Add and all around it took, looks at the clock during the run left out.
  void Charge(Nanoseconds bookkeeping);

  /// All that was kept since the last call. In constant time: `memory` takes the place of what is
  /// given away; best with room for capacity() values.
  LatencyRows Take(std::vector<float> memory);
  size_t capacity() const { return max_rows_ * (launches_ + 1); }

  /// Begin is false from now on.
  void Stop() { stopped_ = true; }

  /// One run in so many is timed.
  int64_t interval() const { return interval_; }

 private:
  void Thin();

  const size_t launches_;
  const size_t max_rows_;
  const double clock_ns_;  // of the looks at the clock in one timed run and what they hold up
  bool stopped_ = false;
  double cost_ns_ = 0;  // of timing one run, smoothed; 0: not known
  double shortest_run_ns_ = 0;
  int64_t affordable_ = 1;  // interval that costs little enough
  int64_t thinning_ = 1;    // how many times fewer are taken because the table was full
  int64_t interval_;
  int64_t until_next_;
  int64_t runs_ = 0;
  std::vector<float> rows_;  // as LatencyRows::us
};

}  // namespace fusion
