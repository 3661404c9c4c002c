#include "server/observe/metric_readings.h"

#include <prometheus/labels.h>

#include <array>
#include <utility>

#include "server/admission/admission.h"
#include "server/admission/process_facts.h"

namespace fusion {
namespace {

using prometheus::Labels;
using prometheus::MetricFamily;
using prometheus::MetricType;

// A family whose values are read now rather than counted.
class Reading {
 public:
  Reading(std::string name, std::string help, MetricType type = MetricType::Gauge) {
    family_.name = std::move(name);
    family_.help = std::move(help);
    family_.type = type;
  }
  Reading& Add(const Labels& labels, double value) {
    prometheus::ClientMetric& metric = family_.metric.emplace_back();
    for (const auto& [name, text] : labels) metric.label.push_back({name, text});
    if (family_.type == MetricType::Counter) {
      metric.counter.value = value;
    } else {
      metric.gauge.value = value;
    }
    return *this;
  }
  Reading& Add(const Labels& labels, int64_t value) {
    return Add(labels, static_cast<double>(value));
  }
  MetricFamily Take() { return std::move(family_); }

 private:
  MetricFamily family_;
};

void ReadStores(const ServerSnapshot& now, std::vector<MetricFamily>* out) {
  Reading entries("fusion_cache_entries", "Plans and kernels kept.");
  Reading bytes("fusion_cache_bytes", "Bytes of plans and kernels kept.");
  Reading limit("fusion_cache_limit_bytes", "Budget of fusion_cache_bytes.");
  Reading evicted("fusion_cache_evictions_total", "Entries removed because the budget was reached.",
                  MetricType::Counter);
  Reading dropped("fusion_cache_dropped_total", "Damaged entries met by a reader and deleted.",
                  MetricType::Counter);
  Reading failures("fusion_cache_write_failures_total", "Tries to write a bundle that failed.",
                   MetricType::Counter);
  Reading unwritten("fusion_store_unwritten_plans",
                    "Plans in memory alone, until they can be written.");
  Reading writable("fusion_store_writable",
                   "0 if nothing is written at present (full disk); reads go on.");
  Reading pinned("fusion_store_pinned_bytes", "Bytes of pinned plans and their kernels.");
  Reading empty("fusion_store_started_empty",
                "1 if a damaged store was put aside when the server started.");
  Reading aside("fusion_store_set_aside_bytes",
                "Bytes of a damaged store that was put aside, at this start or before.");
  Reading free("fusion_store_free_bytes", "Free bytes of the file system of the store.");
  Reading min_free("fusion_store_min_free_bytes",
                   "Value of fusion_store_free_bytes below which nothing is written.");
  if (!now.disk.dir.empty()) {
    empty.Add({}, int64_t{now.disk.started_empty});
    aside.Add({}, now.disk.set_aside_bytes);
    free.Add({}, now.disk.free_bytes);
    min_free.Add({}, now.disk.min_free_bytes);
  }
  Reading disk("fusion_store_disk_bytes", "Bytes occupied on disk, garbage included.");
  for (const StoreStats& tier : now.tiers) {
    Labels labels = {{"tier", std::string(TierName(tier.tier))}};
    Labels plans = labels, kernels = labels;
    plans["kind"] = "plan";
    kernels["kind"] = "kernel";
    entries.Add(plans, tier.plans).Add(kernels, tier.kernels);
    bytes.Add(labels, tier.bytes);
    limit.Add(labels, tier.limit_bytes);
    evicted.Add(labels, tier.evicted);
    dropped.Add(labels, tier.dropped);
    failures.Add(labels, tier.write_failures);
    unwritten.Add(labels, tier.unwritten_plans);
    writable.Add(labels, int64_t{tier.writable});
    disk.Add(labels, tier.disk_bytes);
    pinned.Add(labels, tier.pinned_bytes);
  }
  for (Reading* reading : {&entries, &bytes, &limit, &evicted, &dropped, &failures, &unwritten,
                           &writable, &disk, &pinned, &empty, &aside, &free, &min_free}) {
    out->push_back(reading->Take());
  }
}

// Families of a record store. Their names begin with `prefix`; `count_suffix` ends the name of the
// number of records; `subjects`: what has latencies, for the help texts.
void ReadRecords(const RecordStats& stats, const std::string& prefix,
                 const std::string& count_suffix, const std::string& subjects,
                 std::vector<MetricFamily>* out) {
  auto add = [&](const std::string& suffix, const std::string& help, int64_t value,
                 MetricType type) {
    out->push_back(Reading(StrCat(prefix, suffix), help, type).Add({}, value).Take());
  };
  add(count_suffix, StrCat("Number of ", subjects, " of which latencies are kept."), stats.records,
      MetricType::Gauge);
  add("_bytes", StrCat("Bytes of latencies kept of ", subjects, "."), stats.bytes,
      MetricType::Gauge);
  add("_limit_bytes", StrCat("Budget of ", prefix, "_bytes."), stats.limit_bytes,
      MetricType::Gauge);
  add("_evictions_total",
      StrCat("Number of ", subjects, " whose latencies went because the budget was reached."),
      stats.evicted, MetricType::Counter);
  add("_dropped_total", StrCat("Damaged records of ", subjects, " met by a reader and deleted."),
      stats.dropped, MetricType::Counter);
}

void ReadMeasurements(const ServerSnapshot& now, std::vector<MetricFamily>* out) {
  ReadRecords(now.measurements, "fusion_measurements", "_plans", "plans", out);
  ReadRecords(now.timings, "fusion_timings", "_kernels", "kernels by machine", out);
}

void ReadLearning(const ServerSnapshot& now, std::vector<MetricFamily>* out) {
  const LearningStats& stats = now.learning;
  Reading epochs("fusion_epochs", "Sets of fitted constants that are kept, by state.");
  for (EpochState state : {EpochState::kRejected, EpochState::kShadow, EpochState::kCanary,
                           EpochState::kActive, EpochState::kRetired, EpochState::kRolledBack}) {
    const auto known = stats.epochs.find(state);
    epochs.Add({{"state", std::string(EpochStateName(state))}},
               known == stats.epochs.end() ? 0 : known->second);
  }
  out->push_back(epochs.Take());
  out->push_back(Reading("fusion_plans_renewed_total",
                         "Stored plans that were planned again because of what was measured, by "
                         "whether they changed.",
                         MetricType::Counter)
                     .Add({{"result", "changed"}}, stats.renewals_changed)
                     .Add({{"result", "kept"}}, stats.renewals_kept)
                     .Take());
  out->push_back(
      Reading("fusion_renewals_waiting", "Stored plans that the next request for them plans again.")
          .Add({}, stats.renewals_waiting)
          .Take());
  out->push_back(Reading("fusion_drift_alarms_total",
                         "Times that the latencies of a machine moved away from what is expected.",
                         MetricType::Counter)
                     .Add({}, stats.drifts)
                     .Take());
  Reading ratio("fusion_measured_over_expected",
                "Measured times divided by what the constants in force expect, by kind of device.");
  for (const auto& [device, value] : stats.measured_over_expected) {
    ratio.Add({{"target", device.target},
               {"isa", device.isa},
               {"threads", StrCat(device.threads)}},
              value);
  }
  out->push_back(ratio.Take());
}

void ReadWorkers(const ServerSnapshot& now, std::vector<MetricFamily>* out) {
  const WorkerPoolStats& stats = now.workers;
  out->push_back(Reading("fusion_compiles_total",
                         "Kernels given to the workers, by how that ended.", MetricType::Counter)
                     .Add({{"result", "ok"}}, stats.done)
                     .Add({{"result", "error"}}, stats.failed)
                     .Add({{"result", "timeout"}}, stats.timed_out)
                     .Add({{"result", "oom"}}, stats.out_of_memory)
                     .Add({{"result", "crash"}}, stats.crashed)
                     .Add({{"result", "cancelled"}}, stats.cancelled)
                     .Add({{"result", "rejected"}}, stats.rejected)
                     .Take());
  out->push_back(Reading("fusion_compile_queue_depth", "Kernels that wait for a worker.")
                     .Add({}, stats.queued)
                     .Take());
  out->push_back(Reading("fusion_compile_queue_limit", "Most kernels that may wait.")
                     .Add({}, now.compile_queue_limit)
                     .Take());
  out->push_back(Reading("fusion_workers", "Worker processes by state.")
                     .Add({{"state", "busy"}}, stats.running)
                     .Add({{"state", "idle"}}, std::max<int64_t>(0, stats.workers - stats.running))
                     .Take());
  out->push_back(Reading("fusion_worker_restarts_total",
                         "Workers started beyond the first of each slot.", MetricType::Counter)
                     .Add({}, stats.restarts)
                     .Take());
}

void ReadFailures(const ServerSnapshot& now, std::vector<MetricFamily>* out) {
  out->push_back(Reading("fusion_quarantined_kernels",
                         "Kernels that are not tried any more: two workers died over each.")
                     .Add({}, static_cast<int64_t>(now.quarantine.size()))
                     .Take());
  out->push_back(Reading("fusion_remembered_failures",
                         "Kernels that are not tried again for a while: they did not compile, or "
                         "failed their check.")
                     .Add({}, now.failures)
                     .Take());
}

void ReadSkippedPasses(const ServerSnapshot& now, std::vector<MetricFamily>* out) {
  Reading skipped("fusion_passes_skipped_total",
                  "Plans made without a rewrite that would have made them wrong, by pass.",
                  MetricType::Counter);
  for (const auto& [pass, plans] : now.skipped_passes) skipped.Add({{"pass", pass}}, plans);
  out->push_back(skipped.Take());
}

void ReadRegistered(const ServerSnapshot& now, std::vector<MetricFamily>* out) {
  Reading kernels("fusion_registered_kernels", "Registered kernels by what became of them.");
  for (RegisteredState state :
       {RegisteredState::kUnused, RegisteredState::kReady, RegisteredState::kQuarantined}) {
    const auto count = std::count_if(now.registered.begin(), now.registered.end(),
                                     [&](const auto& kernel) { return kernel.state == state; });
    kernels.Add({{"state", std::string(RegisteredStateName(state))}}, int64_t{count});
  }
  out->push_back(kernels.Take());
}

void ReadSearches(const ServerSnapshot& now, std::vector<MetricFamily>* out) {
  const SearchStats& stats = now.searches;
  out->push_back(
      Reading("fusion_tile_candidates_total",
              "Other ways to cut a kernel that searches came to, by what became of them.",
              MetricType::Counter)
          .Add({{"result", "measured"}}, stats.measured)
          .Add({{"result", "recalled"}}, stats.recalled)
          .Add({{"result", "dropped"}}, stats.dropped)
          .Add({{"result", "chosen"}}, stats.changed)
          .Take());
  out->push_back(Reading("fusion_tile_searches_total", "Searches for tiles, by how they ended.",
                         MetricType::Counter)
                     .Add({{"result", "done"}}, stats.searches - stats.cut_short)
                     .Add({{"result", "cut_short"}}, stats.cut_short)
                     .Take());
  out->push_back(Reading("fusion_tile_races_total",
                         "Kernels timed side by side, by how that ended.", MetricType::Counter)
                     .Add({{"result", "ok"}}, now.workers.races)
                     .Add({{"result", "error"}}, now.workers.races_failed)
                     .Take());
}

void ReadFlow(const ServerSnapshot& now, std::vector<MetricFamily>* out) {
  out->push_back(
      Reading("fusion_ready", "1 while /readyz says ready.").Add({}, int64_t{now.ready}).Take());
  out->push_back(Reading("fusion_singleflight_waiters", "Requests that wait for equal work now.")
                     .Add({}, now.flights_waiting)
                     .Take());
  out->push_back(Reading("fusion_singleflight_shared_total",
                         "Requests that found equal work under way.", MetricType::Counter)
                     .Add({{"scope", "process"}}, now.flights_shared)
                     .Take());
  out->push_back(Reading("fusion_inflight_calls", "Calls under way, waiting ones included.")
                     .Add({}, now.calls)
                     .Take());
  out->push_back(Reading("fusion_inflight_calls_limit", "Most calls that may be under way.")
                     .Add({}, now.call_limit)
                     .Take());
  out->push_back(Reading("fusion_inflight_calls_queued", "Calls that wait for a thread.")
                     .Add({}, now.calls_queued)
                     .Take());
  out->push_back(Reading("fusion_inflight_bytes", "Bytes of the requests under way.")
                     .Add({}, now.inflight_bytes)
                     .Take());
  out->push_back(Reading("fusion_inflight_limit_bytes", "Budget of fusion_inflight_bytes.")
                     .Add({}, now.inflight_limit_bytes)
                     .Take());
  out->push_back(Reading("fusion_planning_bytes", "Memory of imports and plannings under way.")
                     .Add({}, now.planning_bytes)
                     .Take());
  out->push_back(Reading("fusion_planning_limit_bytes", "Budget of fusion_planning_bytes.")
                     .Add({}, now.planning_limit_bytes)
                     .Take());
  out->push_back(Reading("fusion_plannings_evicted_total",
                         "Imports and plannings that ended because they held most of the memory "
                         "for planning when it was used up.",
                         MetricType::Counter)
                     .Add({}, now.plannings_ended)
                     .Take());
  Reading refused("fusion_admission_rejected_total", "Calls refused because of a limit.",
                  MetricType::Counter);
  for (const auto& [reason, calls] : now.refused) refused.Add({{"reason", reason}}, calls);
  out->push_back(refused.Take());
  out->push_back(Reading("fusion_inflight_streams", "Answers that are being read in parts.")
                     .Add({}, now.streams)
                     .Take());
  out->push_back(Reading("fusion_builds_abandoned_total",
                         "Builds of plans that ended because nobody waited for them any more.",
                         MetricType::Counter)
                     .Add({}, now.builds_abandoned)
                     .Take());
  out->push_back(Reading("fusion_warm_answers", "Answers kept by the bytes of their requests.")
                     .Add({}, now.warm_answers)
                     .Take());
  Reading recent("fusion_recent_bytes", "Bytes of answers, graphs and plans of recent requests.");
  for (const auto& [kind, bytes] : now.recent_bytes) recent.Add({{"kind", kind}}, bytes);
  out->push_back(recent.Take());
  out->push_back(Reading("fusion_recent_limit_bytes", "Budget of each of fusion_recent_bytes.")
                     .Add({}, now.recent_limit_bytes)
                     .Take());
}

void ReadConnections(const ServerSnapshot& now, std::vector<MetricFamily>* out) {
  out->push_back(Reading("fusion_connections", "Open connections to the gRPC service.")
                     .Add({}, now.connections)
                     .Take());
  out->push_back(Reading("fusion_connections_limit", "Most connections that may be open.")
                     .Add({}, now.connection_limit)
                     .Take());
  out->push_back(Reading("fusion_connections_refused_total",
                         "Connections closed at once because as many as may be were open.",
                         MetricType::Counter)
                     .Add({}, now.connections_refused)
                     .Take());
  out->push_back(Reading("fusion_connections_closed_total",
                         "Connections closed: they filled the memory, took back too many calls, or "
                         "read no answers.",
                         MetricType::Counter)
                     .Add({}, now.connections_closed)
                     .Take());
  out->push_back(Reading("fusion_admin_connections", "Open connections to the admin port.")
                     .Add({}, now.admin_connections.open)
                     .Take());
  out->push_back(Reading("fusion_admin_connections_closed_total",
                         "Connections to the admin port that were closed without or within their "
                         "answer: they were too slow, or newer ones of the same peer came.",
                         MetricType::Counter)
                     .Add({{"reason", "late"}}, now.admin_connections.late)
                     .Add({{"reason", "crowded"}}, now.admin_connections.crowded)
                     .Take());
}

void ReadTenants(const TenantCounts& tenants, std::vector<MetricFamily>* out) {
  Reading calls("fusion_tenant_calls_total",
                "Calls that ended, by tenant: the first 64 of them, then \"other\".",
                MetricType::Counter);
  Reading refused("fusion_tenant_refused_total", "Calls that ended RESOURCE_EXHAUSTED, by tenant.",
                  MetricType::Counter);
  Reading took("fusion_tenant_seconds_total",
               "Time of the calls that ended, waiting included, by tenant.", MetricType::Counter);
  for (const auto& [tenant, use] : tenants.counts()) {
    calls.Add({{"tenant", tenant}}, use.calls);
    refused.Add({{"tenant", tenant}}, use.refused);
    took.Add({{"tenant", tenant}}, ToMilliseconds(use.took) / 1e3);
  }
  for (Reading* reading : {&calls, &refused, &took}) out->push_back(reading->Take());
}

// Nothing without TLS.
void ReadCertificate(const ServerSnapshot& now, std::vector<MetricFamily>* out) {
  if (!now.certificate_expires.has_value()) return;
  out->push_back(
      Reading("fusion_tls_certificate_expiry_seconds",
              "When the server's certificate ends, seconds since the Unix epoch.")
          .Add({}, int64_t{std::chrono::system_clock::to_time_t(*now.certificate_expires)})
          .Take());
}

void ReadProcess(std::vector<MetricFamily>* out) {
  ProcessFacts facts = ReadProcessFacts();
  out->push_back(
      Reading("process_cpu_seconds_total", "CPU time, user and system.", MetricType::Counter)
          .Add({}, facts.cpu_seconds)
          .Take());
  out->push_back(Reading("process_resident_memory_bytes", "Resident memory.")
                     .Add({}, facts.resident_bytes)
                     .Take());
  out->push_back(Reading("process_virtual_memory_bytes", "Address space.")
                     .Add({}, facts.virtual_bytes)
                     .Take());
  out->push_back(
      Reading("process_open_fds", "Open file descriptors.").Add({}, facts.open_fds).Take());
  out->push_back(
      Reading("process_max_fds", "Most file descriptors.").Add({}, facts.max_fds).Take());
  out->push_back(Reading("process_start_time_seconds", "Start, Unix time.")
                     .Add({}, facts.start_unix_seconds)
                     .Take());
}

}  // namespace

void AddReadings(const ServerSnapshot& now, const TenantCounts& tenants,
                 std::vector<prometheus::MetricFamily>* families) {
  ReadStores(now, families);
  ReadMeasurements(now, families);
  ReadLearning(now, families);
  ReadWorkers(now, families);
  ReadFailures(now, families);
  ReadSkippedPasses(now, families);
  ReadRegistered(now, families);
  ReadSearches(now, families);
  ReadFlow(now, families);
  ReadConnections(now, families);
  ReadTenants(tenants, families);
  ReadCertificate(now, families);
  ReadProcess(families);
}

}  // namespace fusion
