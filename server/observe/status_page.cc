#include "server/observe/status_page.h"

#include <nlohmann/json.hpp>

#include "core/base/files/trusted_path.h"
#include "core/base/utc_time.h"
#include "core/device/host_isa.h"

namespace fusion {
namespace {

using nlohmann::ordered_json;

// By tenant; "*": tenants that are not listed.
ordered_json TenantLimitsJson(const TenantLimits& limits) {
  ordered_json out = ordered_json::object();
  auto add = [&](const std::string& name, const TenantLimit& limit) {
    if (limit == TenantLimit()) return;
    out[name] = {{"calls_per_second", limit.calls_per_second},
                 {"burst", limit.Burst()},
                 {"stored_bytes", limit.stored_bytes}};
  };
  add("*", limits.others);
  for (const auto& [name, limit] : limits.by_name) add(name, limit);
  return out;
}

ordered_json ConfigJson(const ServerConfig& config) {
  return {{"listen", config.listen},
          {"admin", config.admin},
          {"admin-host", config.admin_hosts},
          {"store", config.store_dir},
          {"store-limit", config.store_limit_bytes},
          {"store-min-free", config.store_min_free_bytes},
          {"memory-limit", config.memory_limit_bytes},
          {"workers", config.workers},
          {"worker-memory", config.worker_memory_bytes},
          {"compile-queue", config.compile_queue},
          {"compile-seconds", config.compile_seconds},
          {"compiler", config.compiler},
          {"allow-compiler", config.allowed_compilers},
          {"sandbox", SandboxName(config.sandbox)},
          {"sandbox-readable", config.sandbox_readable},
          {"failure-ttl-seconds", config.failure_ttl_seconds},
          {"max-opt-level", config.max_opt_level},
          {"rules-file", config.rules_file},
          {"kernels", config.kernels},
          {"scratch", config.scratch_dir},
          {"request-threads", config.request_threads},
          {"request-queue", config.request_queue},
          {"max-request-bytes", config.max_request_bytes},
          {"max-inflight-bytes", config.max_inflight_bytes},
          {"planning-bytes", config.planning_bytes},
          {"planning-steps", config.planning_steps},
          {"max-streams", config.max_streams},
          {"max-connections", config.max_connections},
          {"connection-idle-seconds", config.connection_idle_seconds},
          {"tenant-limit", TenantLimitsJson(config.tenant_limits)},
          {"call-seconds", config.call_seconds},
          {"abandoned-build-seconds", config.abandoned_build_seconds},
          {"reflection", config.reflection},
          {"tls-cert", config.tls_cert},
          {"tls-key", config.tls_key},
          {"tls-client-ca", config.tls_client_ca},
          {"tokens", config.tokens},
          {"allow-plaintext", config.allow_plaintext},
          {"signing-key", config.signing_keys},
          {"import-key", config.import_keys},
          {"insecure-permissions", config.insecure_permissions},
          {"socket-mode", ModeText(config.socket_access.mode)},
          {"socket-group", config.socket_access.group},
          {"tenant-namespaces", config.tenant_namespaces},
          {"log-usual", config.log_usual},
          {"drain-seconds", config.drain_seconds},
          {"grace-seconds", config.grace_seconds}};
}

ordered_json QuarantineJson(const std::vector<Quarantine::Entry>& entries) {
  ordered_json out = ordered_json::array();
  for (const Quarantine::Entry& entry : entries) {
    out.push_back({{"key", entry.key.ToHex()},
                   {"reason", entry.reason},
                   {"since_unix_ms", entry.since_unix_ms}});
  }
  return out;
}

ordered_json ToolchainJson(const Toolchain& toolchain) {
  ordered_json isas;
  for (Isa isa : kIsas) {
    const absl::Status& supported = toolchain.SupportsIsa(isa);
    ordered_json& entry = isas[std::string(IsaName(isa))];
    entry["supported"] = supported.ok();
    if (supported.ok()) {
      entry["command"] = toolchain.CommandText(isa, Numerics::kFp32Accumulate);
    } else {
      entry["why_not"] = Message(supported);
    }
  }
  return {{"family", toolchain.family() == CompilerFamily::kGcc ? "gcc" : "clang"},
          {"version", toolchain.version()},
          {"identity", toolchain.identity().ToHex()},
          {"missing", Message(toolchain.Available())},
          {"isas", std::move(isas)}};
}

ordered_json WorkersJson(const ServerSnapshot& now) {
  const WorkerPoolStats& stats = now.workers;
  return {{"limit", now.worker_limit},
          {"alive", stats.workers},
          {"running", stats.running},
          {"queued", stats.queued},
          {"queue_limit", now.compile_queue_limit},
          {"done", stats.done},
          {"failed", stats.failed},
          {"timed_out", stats.timed_out},
          {"out_of_memory", stats.out_of_memory},
          {"crashed", stats.crashed},
          {"retried", stats.retried},
          {"cancelled", stats.cancelled},
          {"rejected", stats.rejected},
          {"restarts", stats.restarts},
          {"failures_remembered", now.failures},
          {"sandbox", now.sandbox}};
}

ordered_json SearchesJson(const SearchStats& stats) {
  return {{"searches", stats.searches}, {"measured", stats.measured},
          {"recalled", stats.recalled}, {"dropped", stats.dropped},
          {"changed", stats.changed},   {"cut_short", stats.cut_short}};
}

ordered_json RegisteredJson(const std::vector<RegisteredCapability>& kernels) {
  ordered_json out = ordered_json::array();
  for (const RegisteredCapability& kernel : kernels) {
    out.push_back({{"name", kernel.name},
                   {"pattern", kernel.pattern},
                   {"source_sha256", kernel.source.ToHex()},
                   {"force", kernel.force},
                   {"state", RegisteredStateName(kernel.state)},
                   {"reason", kernel.reason}});
  }
  return out;
}

ordered_json StoresJson(const std::vector<StoreStats>& tiers) {
  ordered_json out = ordered_json::array();
  for (const StoreStats& tier : tiers) {
    out.push_back({{"tier", TierName(tier.tier)},
                   {"plans", tier.plans},
                   {"kernels", tier.kernels},
                   {"bytes", tier.bytes},
                   {"limit_bytes", tier.limit_bytes},
                   {"disk_bytes", tier.disk_bytes},
                   {"evicted", tier.evicted},
                   {"dropped", tier.dropped},
                   {"write_failures", tier.write_failures},
                   {"unwritten_plans", tier.unwritten_plans},
                   {"pinned_plans", tier.pinned_plans},
                   {"pinned_bytes", tier.pinned_bytes},
                   {"writable", tier.writable},
                   {"not_writable", tier.not_writable}});
  }
  return out;
}

ordered_json DiskJson(const DiskFacts& disk) {
  if (disk.dir.empty()) return nullptr;
  return {{"directory", disk.dir},
          {"schema_version", disk.schema_version},
          {"free_bytes", disk.free_bytes},
          {"min_free_bytes", disk.min_free_bytes},
          {"started_empty", disk.started_empty},
          {"set_aside", disk.set_aside},
          {"set_aside_bytes", disk.set_aside_bytes}};
}

ordered_json RecordsJson(const RecordStats& stats, const char* records) {
  return {{records, stats.records},
          {"bytes", stats.bytes},
          {"limit_bytes", stats.limit_bytes},
          {"evicted", stats.evicted},
          {"dropped", stats.dropped}};
}

ordered_json AccessJson(const ServerSnapshot& now) {
  ordered_json certificate;  // null: no TLS
  if (now.certificate_expires.has_value()) {
    certificate = {{"subject", now.certificate_subject},
                   {"expires", UtcTimeText(*now.certificate_expires)}};
  }
  return {{"authentication", now.authentication},
          {"tokens", now.tokens},
          {"identities", now.identities},
          {"certificate", std::move(certificate)},
          {"signing_keys", now.signing_keys}};
}

ordered_json CallsJson(const Metrics& metrics, const ServerSnapshot& now) {
  ordered_json out;
  for (RpcMethod method : kRpcMethods) {
    ordered_json finished = ordered_json::object();
    for (const auto& [code, count] : metrics.finished(method)) finished[code] = count;
    out[std::string(RpcMethodName(method))] = {{"started", metrics.started(method)},
                                               {"finished", std::move(finished)}};
  }
  out["under_way"] = now.calls;
  out["limit"] = now.call_limit;
  out["queued"] = now.calls_queued;
  out["bytes"] = now.inflight_bytes;
  out["limit_bytes"] = now.inflight_limit_bytes;
  out["streams"] = now.streams;
  out["stream_limit"] = now.stream_limit;
  out["connections"] = now.connections;
  out["connection_limit"] = now.connection_limit;
  out["connections_refused"] = now.connections_refused;
  out["connections_closed"] = now.connections_closed;
  out["refused"] = now.refused;
  out["tenant_inflight_bytes"] = now.tenant_bytes;
  return out;
}

}  // namespace

std::string SupportedIsas(const Toolchain& toolchain) {
  std::vector<std::string_view> names;
  for (Isa isa : kIsas) {
    if (toolchain.SupportsIsa(isa).ok()) names.push_back(IsaName(isa));
  }
  return StrJoin(names, " ");
}

std::string StatusPage(const ServerFacts& facts, const Toolchain& toolchain, const Metrics& metrics,
                       const ServerSnapshot& now) {
  ordered_json page = {{"version", ServerVersion()},
                       {"uptime_seconds", ToMilliseconds(now.uptime) / 1e3},
                       {"ready", now.ready},
                       {"addresses", facts.addresses},
                       {"admin", facts.admin_address},
                       {"host_isa", HostIsaName()},
                       {"config", ConfigJson(facts.config)},
                       {"toolchain", ToolchainJson(toolchain)},
                       {"workers", WorkersJson(now)},
                       {"quarantine", QuarantineJson(now.quarantine)},
                       {"tile_searches", SearchesJson(now.searches)},
                       {"registered_kernels", RegisteredJson(now.registered)},
                       {"stores", StoresJson(now.tiers)},
                       {"disk", DiskJson(now.disk)},
                       {"measurements", RecordsJson(now.measurements, "plans")},
                       {"timings", RecordsJson(now.timings, "kernels")},
                       {"flights",
                        {{"waiting", now.flights_waiting},
                         {"shared", now.flights_shared},
                         {"abandoned", now.builds_abandoned}}},
                       {"recent",
                        {{"warm_answers", now.warm_answers},
                         {"bytes", now.recent_bytes},
                         {"limit_bytes_each", now.recent_limit_bytes}}},
                       {"access", AccessJson(now)},
                       {"calls", CallsJson(metrics, now)}};
  // Paths may be no UTF-8.
  return page.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace fusion
