#include "server/observe/status_of.h"

#include <algorithm>

#include "core/base/unix_time.h"
#include "server/config/config.h"

namespace fusion {

PlanUse UseOf(const PlanReport& report) {
  PlanUse out{.plan_key = report.plan_key,
              .model_name = report.model_name,
              .target = report.target,
              .threads = report.threads,
              .calls = report.runs.calls,
              .median_us = report.runs.median_us,
              .estimated_us = report.totals.estimated_us,
              .launches = report.totals.launches};
  if (report.runs.samples > 0) return out;
  out.median_us = 0;
  for (const KernelReport& kernel : report.kernels) {
    out.median_us += kernel.measured.median_us * kernel.launches;
    if (kernel.launches > 0) {
      out.calls = std::max(out.calls, kernel.measured.calls / kernel.launches);
    }
  }
  return out;
}

std::vector<PlanUse> TopPlans(const std::vector<PlanReport>& reports, size_t limit) {
  std::vector<PlanUse> out;
  for (const PlanReport& report : reports) out.push_back(UseOf(report));
  std::stable_sort(out.begin(), out.end(),
                   [](const PlanUse& a, const PlanUse& b) { return a.TotalUs() > b.TotalUs(); });
  if (out.size() > limit) out.resize(limit);
  return out;
}

CodeCounts FinishedCalls(const ServerStatus& status) {
  CodeCounts out;
  for (const MethodCounts& method : status.methods) {
    for (const auto& [code, count] : method.finished) out[code] += count;
  }
  return out;
}

ServerStatus StatusOf(const ServerSnapshot& now, const Metrics& metrics, const Clock& clock) {
  ServerStatus out{.version = std::string(ServerVersion()),
                   .uptime = now.uptime,
                   .ready = now.ready,
                   .unix_ms = UnixMilliseconds(clock),
                   .calls = now.calls,
                   .call_limit = now.call_limit,
                   .calls_queued = now.calls_queued,
                   .bytes = now.inflight_bytes,
                   .limit_bytes = now.inflight_limit_bytes,
                   .refused = now.refused,
                   .connections = now.connections,
                   .connection_limit = now.connection_limit,
                   .workers = now.workers,
                   .worker_limit = now.worker_limit,
                   .compile_queue_limit = now.compile_queue_limit,
                   .quarantined = static_cast<int64_t>(now.quarantine.size()),
                   .failures = now.failures,
                   .tiers = now.tiers,
                   .measured_plans = now.measurements.records};
  metrics.AddTo(&out);
  return out;
}

std::vector<PlanUse> RecentTopPlans::Get(const CancelToken& cancel) {
  {
    MutexLock lock(&mutex_);
    const bool fresh = read_.has_value() && clock_.Now() - *read_ < kKept;
    if (fresh || reading_) return plans_;
    reading_ = true;
  }
  const CancelToken limited(cancel, clock_.Now() + kReading);
  absl::StatusOr<std::vector<PlanReport>> reports = book_.Reports(std::nullopt, kReports, limited);
  MutexLock lock(&mutex_);
  reading_ = false;
  // After a failure too: what takes too long is not tried at once again.
  read_ = clock_.Now();
  if (reports.ok()) plans_ = TopPlans(*reports, kPlans);
  return plans_;
}

}  // namespace fusion
