#pragma once

#include <chrono>
#include <cstdint>

namespace fusion {

using Nanoseconds = std::chrono::nanoseconds;

/// Time as an interface, so that tests need no sleeps. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Monotonic time since an arbitrary start.
  virtual Nanoseconds Now() const = 0;
  /// Wall time since the Unix epoch.
  virtual Nanoseconds UnixTime() const = 0;

  /// The machine's clock. Never destroyed.
  static const Clock& Real();
};

inline double ToMilliseconds(Nanoseconds t) {
  return std::chrono::duration<double, std::milli>(t).count();
}
inline double ToMicroseconds(Nanoseconds t) {
  return std::chrono::duration<double, std::micro>(t).count();
}

}  // namespace fusion
