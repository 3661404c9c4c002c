#pragma once

#include <vector>

#include "core/device/device_spec.h"
#include "core/device/target.h"
#include "core/learn/latency_book.h"

namespace fusion {

/// Stores what searches for tiles measure on this machine like the reports of a runtime.
/// Thread-safe. `book` must outlive it.
class RaceTimings {
 public:
  /// `specs`: all device specs. `host`: this machine (HostCpu).
  RaceTimings(LatencyBook& book, std::vector<DeviceSpec> specs, Target host,
              const Clock& clock = Clock::Real())
      : book_(book), specs_(std::move(specs)), host_(std::move(host)), clock_(clock) {}

  /// Stores `timings` if their target is the spec of this machine; other targets are left out. So
  /// is what cannot be stored: a search does not fail for it.
  void Add(KernelTimings timings) const;

 private:
  LatencyBook& book_;
  const std::vector<DeviceSpec> specs_;
  const Target host_;
  const Clock& clock_;
};

}  // namespace fusion
