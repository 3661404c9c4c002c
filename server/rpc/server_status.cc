#include "server/rpc/server_status.h"

#include <algorithm>

#include "core/wire/basics/scalars.h"
#include "fusion/v1/fusion_admin.pb.h"
#include "server/rpc/admin_codec.h"
#include "server/rpc/parse_request.h"

namespace fusion {
namespace {

void EncodeWorkers(const ServerStatus& status, v1::CompileWorkers* out) {
  const WorkerPoolStats& stats = status.workers;
  out->set_limit(status.worker_limit);
  out->set_alive(stats.workers);
  out->set_running(stats.running);
  out->set_queued(stats.queued);
  out->set_queue_limit(status.compile_queue_limit);
  out->set_done(stats.done);
  out->set_failed(stats.failed);
  out->set_timed_out(stats.timed_out);
  out->set_out_of_memory(stats.out_of_memory);
  out->set_crashed(stats.crashed);
  out->set_cancelled(stats.cancelled);
  out->set_rejected(stats.rejected);
  out->set_restarts(stats.restarts);
  out->set_quarantined(status.quarantined);
  out->set_failures(status.failures);
}

void EncodeUse(const PlanUse& use, v1::MeasuredPlan* out) {
  out->set_plan_key(DigestToWire(use.plan_key));
  out->set_model_name(TextToWire(use.model_name));
  out->set_target(TextToWire(use.target));
  out->set_threads(use.threads);
  out->set_calls(use.calls);
  out->set_median_us(use.median_us);
  out->set_estimated_us(use.estimated_us);
  out->set_kernels(use.launches);
}

}  // namespace

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

absl::Status CheckServerStatusRequest(std::string_view bytes) {
  v1::GetServerStatusRequest wire;
  return ParseRequest(bytes, &wire);
}

std::string EncodeServerStatus(const ServerStatus& status) {
  v1::GetServerStatusResponse wire;
  wire.set_version(TextToWire(status.version));
  wire.set_uptime_seconds(ToMilliseconds(status.uptime) / 1e3);
  wire.set_ready(status.ready);
  wire.set_unix_ms(status.unix_ms);
  for (const MethodCounts& method : status.methods) {
    v1::MethodCalls* out = wire.add_methods();
    out->set_method(method.method);
    out->set_started(method.started);
    out->set_seconds(method.seconds);
    for (const auto& [code, count] : method.finished) (*out->mutable_finished())[code] = count;
  }
  for (const auto& [from, count] : status.plans) (*wire.mutable_plans())[from] = count;
  wire.set_warm_hits(status.warm_hits);
  wire.set_warm_misses(status.warm_misses);
  wire.set_calls(status.calls);
  wire.set_call_limit(status.call_limit);
  wire.set_calls_queued(status.calls_queued);
  wire.set_bytes(status.bytes);
  wire.set_limit_bytes(status.limit_bytes);
  for (const auto& [reason, count] : status.refused) (*wire.mutable_refused())[reason] = count;
  wire.set_connections(status.connections);
  wire.set_connection_limit(status.connection_limit);
  EncodeWorkers(status, wire.mutable_workers());
  for (const StoreStats& tier : status.tiers) EncodeTier(tier, wire.add_tiers());
  wire.set_measured_plans(status.measured_plans);
  for (const PlanUse& use : status.top_plans) EncodeUse(use, wire.add_top_plans());
  return wire.SerializeAsString();
}

}  // namespace fusion
