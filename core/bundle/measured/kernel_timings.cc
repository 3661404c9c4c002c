#include "core/bundle/measured/kernel_timings.h"

#include <algorithm>

#include "core/base/hash.h"

namespace fusion {

Digest KeyOf(const KernelTimings& timings) {
  FieldHasher h;
  h.Add("timings", 1).Add("target", timings.device.target).Add("isa", timings.device.isa);
  h.Add("threads", timings.device.threads).Add("kernel", BytesOf(timings.kernel));
  h.Add("machine", timings.machine).Add("tenant", timings.tenant);
  if (timings.trusted) h.Add("trusted", 1);
  return h.Finish();
}

void AddTimings(const KernelTimings& more, KernelTimings* out) {
  MeasuredTimes all = std::move(out->times);
  const int64_t last_ms = std::max(out->last_report_unix_ms, more.last_report_unix_ms);
  const double clock_ghz = more.clock_ghz > 0 ? more.clock_ghz : out->clock_ghz;
  AddCalls(more.times.calls, &all);
  all.samples_us.insert(all.samples_us.end(), more.times.samples_us.begin(),
                        more.times.samples_us.end());
  KeepNewest(KernelTimings::kMaxSamples, &all);
  *out = more;
  out->times = std::move(all);
  out->last_report_unix_ms = last_ms;
  out->clock_ghz = clock_ghz;
}

int64_t ChargedBytes(const KernelTimings& timings) {
  constexpr int64_t kOverheadBytes = 512;
  size_t text = timings.device.target.size() + timings.device.isa.size() + timings.machine.size() +
                timings.tenant.size() + timings.model_name.size() + timings.bound.size() +
                timings.form.size();
  return kOverheadBytes + static_cast<int64_t>(text + timings.times.samples_us.size() * 4);
}

}  // namespace fusion
