#pragma once

#include <atomic>

#include "core/base/clock.h"

namespace fusion {

/// Time that passes only when told to. Thread-safe.
class FakeClock final : public Clock {
 public:
  Nanoseconds Now() const override { return Nanoseconds(now_.load()); }
  Nanoseconds UnixTime() const override { return std::chrono::seconds(1'700'000'000) + Now(); }
  void Advance(Nanoseconds by) { now_ += by.count(); }

 private:
  std::atomic<int64_t> now_{0};
};

}  // namespace fusion
