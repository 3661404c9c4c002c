#pragma once

#include <atomic>
#include <cstdint>

namespace fusion {

/// Picks one in N, the first of them first. Thread-safe; a pick is one addition.
class LogSample {
 public:
  /// `one_in` >= 1; 1: all.
  explicit LogSample(int64_t one_in) : one_in_(static_cast<uint64_t>(one_in)) {}

  bool Pick() {
    return one_in_ == 1 || seen_.fetch_add(1, std::memory_order_relaxed) % one_in_ == 0;
  }
  int64_t one_in() const { return static_cast<int64_t>(one_in_); }

 private:
  const uint64_t one_in_;
  std::atomic<uint64_t> seen_{0};
};

}  // namespace fusion
