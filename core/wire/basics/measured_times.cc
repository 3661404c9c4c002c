#include "core/wire/basics/measured_times.h"

#include "fusion/v1/measurements.pb.h"

namespace fusion {

void EncodeTimes(const MeasuredTimes& times, v1::StoredLatencies* out) {
  out->set_calls(times.calls);
  out->mutable_samples_us()->Add(times.samples_us.begin(), times.samples_us.end());
}

absl::StatusOr<MeasuredTimes> DecodeTimes(const v1::StoredLatencies& wire, size_t max_samples) {
  if (wire.samples_us_size() > static_cast<int>(max_samples)) {
    return InvalidArgument("samples_us: ", wire.samples_us_size(), " entries; at most ",
                           max_samples);
  }
  if (wire.calls() < wire.samples_us_size()) {
    return InvalidArgument("calls: ", wire.calls(), "; expected at least as many as samples");
  }
  for (float sample : wire.samples_us()) {
    // Written so that NaN fails too.
    if (sample > 0 && sample <= static_cast<float>(kMaxLatencyUs)) continue;
    return InvalidArgument("samples_us: ", sample, "; expected more than 0, at most ",
                           kMaxLatencyUs);
  }
  return MeasuredTimes{.calls = wire.calls(),
                       .samples_us = {wire.samples_us().begin(), wire.samples_us().end()}};
}

}  // namespace fusion
