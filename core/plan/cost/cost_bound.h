#pragma once

#include <vector>

#include "core/device/device_spec.h"
#include "core/graph/program/program.h"

namespace fusion {

/// A lower bound of the cost of a kernel, computed without a schedule: distinct bytes at the
/// bandwidth of the memory that they must come from, arithmetic at the full rate of all units, one
/// launch. Must stay below EstimateKernel, so that a set whose bound shows no gain need not be
/// lowered. Not thread-safe, const functions included. Constructor arguments must outlive it.
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
  double least_class_ = 1;          // least factor of a class of kernels
  mutable std::vector<int> seen_;   // by value: the last call that visited it
  mutable std::vector<int> in_;     // by op: the last call for a set that holds it
  mutable int call_ = 0;
};

}  // namespace fusion
