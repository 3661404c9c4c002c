#include "server/admission.h"

#include <utility>

namespace fusion {

Admission::Pass::Pass(Pass&& other) noexcept
    : admission_(std::exchange(other.admission_, nullptr)), bytes_(other.bytes_) {}

Admission::Pass::~Pass() {
  if (admission_ == nullptr) return;
  admission_->bytes_ -= bytes_;
  --admission_->calls_;
}

// The queue holds every call there can be: a call whose task has just ended may submit its next one
// before the thread is free again.
Admission::Admission(const AdmissionLimits& limits)
    : limits_(limits),
      threads_(limits.threads, static_cast<size_t>(limits.threads + limits.queue)) {}

absl::StatusOr<Admission::Pass> Admission::Enter(int64_t bytes) {
  int64_t most = limits_.threads + limits_.queue;
  if (calls_.fetch_add(1) >= most) {
    --calls_;
    ++rejected_calls_;
    return ResourceExhausted("server is busy: ", most, " calls are under way; try again later");
  }
  if (closed_) {  // looked at after counting, so that nobody slips in behind a count of zero
    --calls_;
    return Unavailable("server is stopping");
  }
  int64_t before = bytes_.fetch_add(bytes);
  // A request that alone exceeds the limit is let in when nothing else is there.
  if (before > 0 && before + bytes > limits_.inflight_bytes) {
    bytes_ -= bytes;
    --calls_;
    ++rejected_bytes_;
    return ResourceExhausted("server is busy: requests of ", HumanBytes(before),
                             " are under way, and this one of ", HumanBytes(bytes),
                             " would exceed ", HumanBytes(limits_.inflight_bytes));
  }
  return Pass(this, bytes);
}

}  // namespace fusion
