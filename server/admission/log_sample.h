#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "core/base/clock.h"

namespace fusion {

/// Selects the first `per_second` of similar log lines in each second. So a flood of them costs
/// little, and light load is logged completely. Thread-safe; Pick costs a clock read and two atomic
/// operations.
class LogSample {
 public:
  /// `per_second` below 0: all. `clock` must outlive it.
  explicit LogSample(int64_t per_second, const Clock& clock = Clock::Real())
      : per_second_(per_second), clock_(clock) {}

  /// nullopt: omit the line. Otherwise write it, with the returned number of lines omitted since
  /// the last written one.
  std::optional<int64_t> Pick() {
    if (per_second_ < 0) return 0;
    const int64_t second = clock_.Now() / std::chrono::seconds(1);
    if (second_.exchange(second, std::memory_order_relaxed) != second) {
      picked_.store(0, std::memory_order_relaxed);
    }
    if (picked_.fetch_add(1, std::memory_order_relaxed) < per_second_) {
      return left_out_.exchange(0, std::memory_order_relaxed);
    }
    left_out_.fetch_add(1, std::memory_order_relaxed);
    return std::nullopt;
  }

 private:
  const int64_t per_second_;
  const Clock& clock_;
  std::atomic<int64_t> second_{-1};
  std::atomic<int64_t> picked_{0};  // in that second
  std::atomic<int64_t> left_out_{0};
};

}  // namespace fusion
