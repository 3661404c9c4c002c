#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/base/clock.h"

namespace fusion {

/// How much of this machine other processes use, from the counters of Linux (/proc/stat) and the
/// CPU time of this process. Not thread-safe.
class BackgroundLoad {
 public:
  /// Busy and total time of all CPUs together since the machine started, and CPU time of this
  /// process.
  struct Counters {
    Nanoseconds busy{0};
    Nanoseconds all{0};
    Nanoseconds own{0};
  };
  /// Reads the counters; nullopt: this machine has none.
  using Read = std::function<std::optional<Counters>()>;

  explicit BackgroundLoad(Read read = ReadCounters);

  /// The share since the previous call, or since the constructor, 0..1; nullopt: unknown, or less
  /// than 50 ms have passed, in which the counters have too few steps.
  std::optional<double> Take();

  static std::optional<Counters> ReadCounters();

 private:
  const Read read_;
  std::optional<Counters> last_;
};

/// The counters in the text of /proc/stat, in steps of 1 / `steps_per_s` seconds; `own` stays 0.
/// nullopt: it has no line of all CPUs.
std::optional<BackgroundLoad::Counters> ParseCpuStat(const std::string& text, long steps_per_s);

}  // namespace fusion
