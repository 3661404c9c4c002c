#include "core/base/clock.h"

namespace fusion {
namespace {

class RealClock final : public Clock {
 public:
  Nanoseconds Now() const override { return std::chrono::steady_clock::now().time_since_epoch(); }
  Nanoseconds UnixTime() const override {
    return std::chrono::system_clock::now().time_since_epoch();
  }
};

}  // namespace

const Clock& Clock::Real() {
  static const RealClock clock;
  return clock;
}

}  // namespace fusion
