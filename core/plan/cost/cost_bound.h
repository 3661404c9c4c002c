#pragma once

#include <vector>

#include "core/device/device_spec.h"
#include "core/graph/program/program.h"

namespace fusion {

/// What a kernel of some loop ops costs at least, without making a schedule: distinct bytes at the
/// rate of the memory they must come from, arithmetic at the full rate of all units, one launch.
/// Follows EstimateKernel, so that a set whose bound is no gain need not be lowered. Not
/// thread-safe. What it is made from outlives it.
class CostBound {
 public:
  CostBound(const Program& program, const DeviceSpec& device);

  /// Microseconds; `loops` ascending.
  double Of(const std::vector<LoopId>& loops) const;

 private:
  const Program& program_;
  const DeviceSpec& device_;
  std::vector<std::vector<LoopId>> readers_;  // by value
  std::vector<bool> returned_;
  std::vector<double> bytes_;       // by value
  std::vector<double> compute_us_;  // by op
  mutable std::vector<int> seen_;   // by value: last call that came by
  mutable std::vector<int> in_;     // by op: last call for a set with it
  mutable int call_ = 0;
};

}  // namespace fusion
