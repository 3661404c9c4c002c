#include "client/calls/breaker.h"

#include <algorithm>

namespace fusion {

std::string_view BreakerPhaseName(BreakerPhase phase) {
  switch (phase) {
    case BreakerPhase::kClosed:
      return "closed";
    case BreakerPhase::kOpen:
      return "open";
    case BreakerPhase::kProbe:
      break;
  }
  return "probe";
}

CircuitBreaker::CircuitBreaker(const BreakerOptions& options, const Clock& clock,
                               std::function<double()> random)
    : options_(options), clock_(clock), random_(std::move(random)), pause_(options.pause) {}

absl::Status CircuitBreaker::Admit() {
  MutexLock lock(&mutex_);
  if (state_.phase == BreakerPhase::kClosed) return absl::OkStatus();
  const Nanoseconds now = clock_.Now();
  if (state_.phase == BreakerPhase::kOpen && now >= probe_at_) {
    state_.phase = BreakerPhase::kProbe;
    return absl::OkStatus();
  }
  const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(now - opened_at_);
  return Unavailable("circuit open since ", since.count(), " ms, after ", state_.failures,
                     " failures in a row: ", state_.last_failure);
}

void CircuitBreaker::Record(const absl::Status& status) {
  MutexLock lock(&mutex_);
  if (absl::IsCancelled(status)) {
    // The probe found out nothing: the next call is one.
    if (state_.phase == BreakerPhase::kProbe) state_.phase = BreakerPhase::kOpen;
    return;
  }
  if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status)) {
    // A call from before the circuit opened may end after it: the service responds.
    state_.phase = BreakerPhase::kClosed;
    state_.failures = 0;
    state_.open_since = Nanoseconds(0);
    pause_ = options_.pause;
    return;
  }
  ++state_.failures;
  state_.last_failure = std::string(Message(status));
  const bool probed = state_.phase == BreakerPhase::kProbe;
  const bool enough = options_.failures > 0 && state_.failures >= options_.failures;
  if (probed || (enough && state_.phase == BreakerPhase::kClosed)) Open();
}

void CircuitBreaker::Open() {
  const Nanoseconds now = clock_.Now();
  if (state_.phase == BreakerPhase::kClosed) {
    ++state_.opened;
    opened_at_ = now;
    state_.open_since = clock_.UnixTime();
  }
  state_.phase = BreakerPhase::kOpen;
  const double longer = 1 + options_.jitter * random_();
  probe_at_ = now + std::chrono::duration_cast<Nanoseconds>(pause_ * longer);
  pause_ = std::min(2 * pause_, options_.most_pause);
}

BreakerState CircuitBreaker::state() const {
  MutexLock lock(&mutex_);
  BreakerState out = state_;
  if (out.phase == BreakerPhase::kOpen) {
    out.probe_in = std::max(Nanoseconds(0), probe_at_ - clock_.Now());
  }
  return out;
}

}  // namespace fusion
