#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/clock.h"

namespace fusion {

/// The times of some runs of an executor.
struct LatencySamples {
  int64_t runs = 0;            // successful runs since the previous samples, timed or not
  std::vector<double> run_us;  // of the timed ones, oldest first
  // By plan launch, each with one entry for each entry of run_us: from the end of the previous
  // launch to its own end.
  std::vector<std::vector<double>> launch_us;
};

/// The same in row form: a row for each timed run, with its launches and then the total, in
/// microseconds.
struct LatencyRows {
  int64_t runs = 0;
  size_t launches = 0;
  std::vector<float> us;
};
LatencySamples ByLaunch(const LatencyRows& rows);

/// Decides which runs are timed, so that timing takes less than 0.5 % of the time of all runs, and
/// stores their times. Stores at most 256 runs (fewer if a run has thousands of launches). If there
/// are more, it keeps a part, spread evenly over the time since Take. Not thread-safe.
class LatencySampler {
 public:
  /// `launches`: of one run. `clock_read`: the time of one clock read.
  LatencySampler(size_t launches, Nanoseconds clock_read);

  /// Call when a run begins. True: time this run.
  bool Begin();

  /// Call when a run has succeeded, timed or not.
  void CountRun() { ++runs_; }
  /// Call in addition if it was timed. `boundaries`: launches + 1 times of one clock, the begin of
  /// the run and the end of each launch, in order.
  void Add(const std::vector<Nanoseconds>& boundaries);
  /// Call after Add with the time that Add and the bookkeeping around it took. Clock reads during
  /// the run do not belong to it.
  void Charge(Nanoseconds bookkeeping);

  /// Returns the rows since the last call. Constant time: `memory` becomes the new store for rows.
  /// Reserve room for capacity() values in it.
  LatencyRows Take(std::vector<float> memory);
  size_t capacity() const { return max_rows_ * (launches_ + 1); }

  /// Begin returns false from now on.
  void Stop() { stopped_ = true; }

  /// One run in `interval()` is timed.
  int64_t interval() const { return interval_; }

 private:
  void Thin();

  const size_t launches_;
  const size_t max_rows_;
  const double clock_ns_;  // of all clock reads of a timed run, with the delay they cause
  bool stopped_ = false;
  double cost_ns_ = 0;  // of timing one run, smoothed; 0: unknown
  double shortest_run_ns_ = 0;
  int64_t affordable_ = 1;  // interval that keeps the cost below the limit
  int64_t thinning_ = 1;    // factor on the interval because the table was full
  int64_t interval_;
  int64_t until_next_;
  int64_t runs_ = 0;
  std::vector<float> rows_;  // as LatencyRows::us
};

}  // namespace fusion
