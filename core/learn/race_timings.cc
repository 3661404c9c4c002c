#include "core/learn/race_timings.h"

#include "core/base/unix_time.h"

namespace fusion {

void RaceTimings::Add(KernelTimings timings) const {
  Target host = host_;
  host.isa = timings.device.isa;
  absl::StatusOr<DeviceSpec> spec = ResolveTarget(specs_, host, /*warning=*/nullptr);
  if (!spec.ok() || spec->name != timings.device.target) return;
  timings.last_report_unix_ms = UnixMilliseconds(clock_);
  book_.Note(timings).IgnoreError();
}

}  // namespace fusion
