#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

namespace fusion {

/// How something goes up, a minute: least squares over the means of twelve times of equal length,
/// with its 95 % interval (Student's t of ten degrees of freedom). Over fewer samples than two a
/// time the interval is everything.
struct Slope {
  double a_minute = 0;
  double low = -1e9;
  double high = 1e9;
};

/// What a process held over the second half of the time it was watched.
struct Holdings {
  Slope mib;  // of resident memory
  Slope fds;  // file descriptors
  int64_t least_fds = 0;
  int64_t most_fds = 0;

  nlohmann::ordered_json ToJson() const;
};

/// Looks at a process every second, on a thread of its own.
///
///   HoldingsWatch watch(daemon->pid());
///   ... load ...
///   const Holdings held = watch.Stop();
class HoldingsWatch {
 public:
  explicit HoldingsWatch(pid_t pid) : pid_(pid), thread_([this] { Run(); }) {}
  ~HoldingsWatch() { End(); }

  Holdings Stop();

 private:
  struct Sample {
    double minutes = 0;  // since the start
    double mib = 0;
    int64_t fds = 0;
  };

  void Run();
  void End();
  static Slope SlopeOf(const std::vector<Sample>& samples, double (*value)(const Sample&));

  const pid_t pid_;
  std::atomic<bool> over_{false};
  std::vector<Sample> samples_;  // of the thread, while it runs
  std::thread thread_;
};

}  // namespace fusion
