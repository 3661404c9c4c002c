#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/device/measured_constants.h"
#include "core/device/target.h"

namespace fusion {

struct ProbeOptions {
  /// Duration, kLeastProbeSeconds..kMostProbeSeconds. Memory that is touched first, and slow
  /// machines, may add half a second.
  double seconds = 2;
  /// Threads of the "total_" rates, 1..kMostProbeThreads; 0: the usable cores.
  int threads = 0;
  /// The instructions to measure; default: the highest level of this machine.
  std::optional<Isa> isa;
  /// Program that measures, for MeasuredConstants::source: "fusionctl probe 0.9".
  std::string program = "probe";
  /// Stops between two bursts if it returns true, at the latest after 0.1 s.
  std::function<bool()> stop = [] { return false; };
};
inline constexpr double kLeastProbeSeconds = 0.05;
inline constexpr double kMostProbeSeconds = 60;
inline constexpr int kMostProbeThreads = 512;

/// How a constant was measured.
struct ProbedConstant {
  std::string name;  // MeasurableConstant::name
  std::string unit;
  double value = 0;  // the better quartile of the bursts
  double low = 0;    // their 10 % and 90 % quantiles
  double high = 0;
  int bursts = 0;
};

struct ProbeResult {
  MeasuredConstants constants;
  std::vector<ProbedConstant> details;  // in the order of measuring
  /// What makes the result doubtful, one sentence each: other programs took cores, the clock
  /// changed.
  std::vector<std::string> warnings;
  double seconds = 0;
};

/// Measures the constants of this machine's CPU: rates of products and of element-wise operations,
/// bandwidths of its caches and of memory, costs of handing work to threads. Rates and bandwidths
/// with one thread and with all.
///
/// All are measured in turn, in bursts of some milliseconds, until the time is over; so a
/// disturbance of a second affects each a little and none wholly. The upper quartile of a rate and
/// the lower quartile of a cost count, because a disturbance only ever makes things slower. Of
/// bursts in which a thread had its core for less than nine tenths of the time, those are left out
/// that leave three others. Uses as much memory as half of the caches have, and up to 256 MiB more.
/// FailedPrecondition if this machine lacks the instructions; InvalidArgument for options out of
/// range; Cancelled by `stop`; ResourceExhausted without memory or threads.
absl::StatusOr<ProbeResult> Probe(const ProbeOptions& options);

}  // namespace fusion
