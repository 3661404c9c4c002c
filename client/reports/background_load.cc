#include "client/reports/background_load.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace fusion {
namespace {

constexpr Nanoseconds kLeast = std::chrono::milliseconds(50);

Nanoseconds TimeOf(const timeval& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
}

}  // namespace

std::optional<BackgroundLoad::Counters> ParseCpuStat(const std::string& text, long steps_per_s) {
  std::istringstream line(text.substr(0, text.find('\n')));
  std::string name;
  line >> name;
  if (name != "cpu" || steps_per_s <= 0) return std::nullopt;
  // user, nice, system, idle, iowait, irq, softirq, steal; the guests that follow are part of user.
  int64_t all = 0;
  int64_t idle = 0;
  int fields = 0;
  for (int64_t steps = 0; fields < 8 && line >> steps; ++fields) {
    if (steps < 0 || steps > INT64_MAX / 16) return std::nullopt;
    all += steps;
    if (fields == 3 || fields == 4) idle += steps;
  }
  if (fields < 5) return std::nullopt;
  auto time = [&](int64_t steps) {
    return Nanoseconds(
        static_cast<int64_t>(static_cast<double>(steps) * 1e9 / static_cast<double>(steps_per_s)));
  };
  return BackgroundLoad::Counters{.busy = time(all - idle), .all = time(all)};
}

BackgroundLoad::BackgroundLoad(Read read) : read_(std::move(read)), last_(read_()) {}

std::optional<double> BackgroundLoad::Take() {
  const std::optional<Counters> now = read_();
  if (!now.has_value() || !last_.has_value()) {
    last_ = now;
    return std::nullopt;
  }
  const Nanoseconds all = now->all - last_->all;
  // `all` counts every CPU, so wall time is shorter.
  if (all < kLeast) return std::nullopt;
  const Nanoseconds others = (now->busy - last_->busy) - (now->own - last_->own);
  last_ = now;
  const double share = static_cast<double>(others.count()) / static_cast<double>(all.count());
  return std::clamp(share, 0.0, 1.0);
}

std::optional<BackgroundLoad::Counters> BackgroundLoad::ReadCounters() {
  std::ifstream file("/proc/stat");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  std::optional<Counters> counters = ParseCpuStat(line, sysconf(_SC_CLK_TCK));
  rusage own{};
  if (!counters.has_value() || getrusage(RUSAGE_SELF, &own) != 0) return std::nullopt;
  counters->own = TimeOf(own.ru_utime) + TimeOf(own.ru_stime);
  return counters;
}

}  // namespace fusion
