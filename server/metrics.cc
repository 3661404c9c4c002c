#include "server/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "core/base/mutex.h"
#include "server/process_facts.h"
#include "server/request_codec.h"
#include "server/tenant_counts.h"

namespace fusion {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildHistogram;
using prometheus::Counter;
using prometheus::Family;
using prometheus::Histogram;
using prometheus::Labels;
using prometheus::MetricFamily;
using prometheus::MetricType;

constexpr int kCodes = 17;  // of gRPC
constexpr std::array<EntryKind, 2> kKinds = {EntryKind::kPlan, EntryKind::kKernel};
constexpr std::array<Tier, 3> kTiers = {Tier::kNone, Tier::kMemory, Tier::kDisk};
constexpr std::array<CacheOutcome, 4> kOutcomes = {CacheOutcome::kMiss, CacheOutcome::kHitMemory,
                                                   CacheOutcome::kHitStore,
                                                   CacheOutcome::kSharedFlight};

// Seconds. A warm answer takes some 200 us, a cold one seconds.
const Histogram::BucketBoundaries kCallBuckets = {
    1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30};
// Seconds. From a read in memory to a plan of a large graph.
const Histogram::BucketBoundaries kStageBuckets = {1e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3,
                                                   0.01, 0.03, 0.1,  0.3,  1,    3,    10};
// Seconds.
const Histogram::BucketBoundaries kCompileBuckets = {1e-3, 0.01, 0.05, 0.1, 0.25, 0.5, 1,
                                                     2.5,  5,    10,   30,  100,  300};

size_t Index(RpcMethod method) { return static_cast<size_t>(method); }

std::string CodeName(int code) {
  std::string name = absl::StatusCodeToString(static_cast<absl::StatusCode>(code));
  return name;
}

Labels MethodLabels(RpcMethod method) {
  return {{"grpc_service", std::string(RpcServiceName(method))},
          {"grpc_method", std::string(RpcMethodName(method))},
          {"grpc_type", TakesStream(method) ? "client_stream"
                        : IsStream(method)  ? "server_stream"
                                            : "unary"}};
}

// What became of a report: a label of fusion_measurements_ingested_total.
std::string_view IngestionResult(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return "ok";
    case absl::StatusCode::kInvalidArgument:
      return "invalid";
    case absl::StatusCode::kNotFound:
      return "unknown_plan";
    default:
      return "error";
  }
}

// A series that is not shown before it has counted something: a server has more than ten methods
// with seventeen codes each, and sees few of them. Thread-safe.
template <typename Metric>
class Seldom {
 public:
  // Call before all else; `family` outlives this.
  void Init(Family<Metric>* family, const Labels& labels) {
    family_ = family;
    labels_ = labels;
  }
  // `args` are those of the metric; the first caller's count.
  template <typename... Args>
  Metric& Get(const Args&... args) {
    Metric* metric = metric_.load(std::memory_order_acquire);
    if (metric == nullptr) {
      metric = &family_->Add(labels_, args...);  // the same for whoever comes at the same time
      metric_.store(metric, std::memory_order_release);
    }
    return *metric;
  }
  // Null before the first Get.
  const Metric* Peek() const { return metric_.load(std::memory_order_acquire); }

 private:
  Family<Metric>* family_ = nullptr;
  Labels labels_;
  std::atomic<Metric*> metric_{nullptr};
};

struct MethodCounters {
  Seldom<Counter> started;
  Seldom<Counter> received;
  Seldom<Counter> sent;
  Seldom<Histogram> seconds;
  std::array<Seldom<Counter>, kCodes> handled;
};

// A family whose values are read now rather than counted.
class Reading {
 public:
  Reading(const char* name, const char* help, MetricType type = MetricType::Gauge) {
    family_.name = name;
    family_.help = help;
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
  if (!now.disk.dir.empty()) {
    empty.Add({}, int64_t{now.disk.started_empty});
    aside.Add({}, now.disk.set_aside_bytes);
    free.Add({}, now.disk.free_bytes);
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
                           &writable, &disk, &pinned, &empty, &aside, &free}) {
    out->push_back(reading->Take());
  }
}

void ReadMeasurements(const ServerSnapshot& now, std::vector<MetricFamily>* out) {
  const MeasurementStats& stats = now.measurements;
  out->push_back(Reading("fusion_measurements_plans", "Plans of which latencies are kept.")
                     .Add({}, stats.plans)
                     .Take());
  out->push_back(
      Reading("fusion_measurements_bytes", "Bytes of latencies kept.").Add({}, stats.bytes).Take());
  out->push_back(Reading("fusion_measurements_limit_bytes", "Budget of fusion_measurements_bytes.")
                     .Add({}, stats.limit_bytes)
                     .Take());
  out->push_back(Reading("fusion_measurements_evictions_total",
                         "Plans whose latencies went because the budget was reached.",
                         MetricType::Counter)
                     .Add({}, stats.evicted)
                     .Take());
  out->push_back(Reading("fusion_measurements_dropped_total",
                         "Damaged records of latencies met by a reader and deleted.",
                         MetricType::Counter)
                     .Add({}, stats.dropped)
                     .Take());
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
  out->push_back(Reading("fusion_planning_bytes", "Memory of imports and plannings under way.")
                     .Add({}, now.planning_bytes)
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
  for (const auto& [tenant, count] : tenants.counts()) calls.Add({{"tenant", tenant}}, count);
  out->push_back(calls.Take());
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

// Pointers are looked up once: Family::Add costs more than everything else together.
struct Metrics::Counters {
  prometheus::Registry registry;
  std::array<MethodCounters, kRpcMethods.size()> methods;
  std::array<std::array<Counter*, kTiers.size()>, kKinds.size()> gets;
  std::array<Histogram*, kKinds.size()> get_seconds;
  Histogram* put_seconds;
  Counter* puts_ok;
  Counter* puts_failed;
  std::array<Counter*, kOutcomes.size()> outcomes;
  Counter* warm_hits;
  Counter* warm_misses;
  std::map<std::string_view, Counter*> ingested;
  Histogram* compile_seconds;
  Histogram* check_seconds;
  Histogram* queue_seconds;
  Family<Histogram>* stages;
  TenantCounts tenants{64};
  Mutex mutex;
  std::map<std::string, Histogram*> stage_seconds ABSL_GUARDED_BY(mutex);

  void AddMethods();
  void AddStore();
  void AddPlans();
  void AddReports();
  Histogram* Stage(const std::string& name) {
    MutexLock lock(&mutex);
    Histogram*& stage = stage_seconds[name];  // names are ours, some twelve of them
    if (stage == nullptr) stage = &stages->Add({{"stage", name}}, kStageBuckets);
    return stage;
  }
};

void Metrics::Counters::AddMethods() {
  auto& started = BuildCounter()
                      .Name("grpc_server_started_total")
                      .Help("Calls that came in.")
                      .Register(registry);
  auto& handled = BuildCounter()
                      .Name("grpc_server_handled_total")
                      .Help("Calls that ended, by code.")
                      .Register(registry);
  auto& seconds = BuildHistogram()
                      .Name("grpc_server_handling_seconds")
                      .Help("From the request's arrival to its answer.")
                      .Register(registry);
  auto& received = BuildCounter()
                       .Name("grpc_server_msg_received_total")
                       .Help("Messages received.")
                       .Register(registry);
  auto& sent =
      BuildCounter().Name("grpc_server_msg_sent_total").Help("Messages sent.").Register(registry);
  for (RpcMethod method : kRpcMethods) {
    Labels labels = MethodLabels(method);
    MethodCounters& of = methods[Index(method)];
    of.started.Init(&started, labels);
    of.received.Init(&received, labels);
    of.sent.Init(&sent, labels);
    of.seconds.Init(&seconds, labels);
    for (int code = 0; code < kCodes; ++code) {
      Labels with_code = labels;
      with_code["grpc_code"] = CodeName(code);
      of.handled[static_cast<size_t>(code)].Init(&handled, with_code);
    }
  }
}

void Metrics::Counters::AddStore() {
  auto& requests = BuildCounter()
                       .Name("fusion_cache_requests_total")
                       .Help("Reads of plans and kernels, by the tier that had it.")
                       .Register(registry);
  auto& reads = BuildHistogram()
                    .Name("fusion_cache_read_seconds")
                    .Help("One read of the cache, all tiers.")
                    .Register(registry);
  for (EntryKind kind : kKinds) {
    std::string kind_name(EntryKindName(kind));
    for (Tier tier : kTiers) {
      gets[static_cast<size_t>(kind)][static_cast<size_t>(tier)] =
          &requests.Add({{"kind", kind_name},
                         {"tier", std::string(TierName(tier))},
                         {"result", tier == Tier::kNone ? "miss" : "hit"}});
    }
    get_seconds[static_cast<size_t>(kind)] = &reads.Add({{"kind", kind_name}}, kStageBuckets);
  }
  auto& writes = BuildCounter()
                     .Name("fusion_cache_writes_total")
                     .Help("Bundles of a plan and its kernels written.")
                     .Register(registry);
  puts_ok = &writes.Add({{"result", "ok"}});
  puts_failed = &writes.Add({{"result", "error"}});
  put_seconds = &BuildHistogram()
                     .Name("fusion_cache_write_seconds")
                     .Help("One write of a bundle, synced to disk.")
                     .Register(registry)
                     .Add({}, kStageBuckets);
}

void Metrics::Counters::AddPlans() {
  auto& answers = BuildCounter()
                      .Name("fusion_plans_total")
                      .Help("Plans answered, by where they came from.")
                      .Register(registry);
  for (CacheOutcome outcome : kOutcomes) {
    outcomes[static_cast<size_t>(outcome)] =
        &answers.Add({{"cache", std::string(CacheOutcomeName(outcome))}});
  }
  auto& warm = BuildCounter()
                   .Name("fusion_warm_requests_total")
                   .Help("PlanFusion requests by whether their bytes were answered before.")
                   .Register(registry);
  warm_hits = &warm.Add({{"result", "hit"}});
  warm_misses = &warm.Add({{"result", "miss"}});
  auto& making = BuildHistogram()
                     .Name("fusion_compile_seconds")
                     .Help("Of one kernel: compiler and linker, check.")
                     .Register(registry);
  compile_seconds = &making.Add({{"stage", "compile"}}, kCompileBuckets);
  check_seconds = &making.Add({{"stage", "check"}}, kCompileBuckets);
  queue_seconds = &BuildHistogram()
                       .Name("fusion_admission_wait_seconds")
                       .Help("Time a call waited for a thread.")
                       .Register(registry)
                       .Add({}, kStageBuckets);
  stages = &BuildHistogram()
                .Name("fusion_stage_seconds")
                .Help("One stage of one PlanFusion call.")
                .Register(registry);
}

void Metrics::Counters::AddReports() {
  auto& reports = BuildCounter()
                      .Name("fusion_measurements_ingested_total")
                      .Help("Reports of latencies, by what became of them.")
                      .Register(registry);
  for (std::string_view result : {"ok", "invalid", "unknown_plan", "error"}) {
    ingested[result] = &reports.Add({{"result", std::string(result)}});
  }
}

Metrics::Metrics(const std::string& version, const std::string& compiler)
    : counters_(std::make_unique<Counters>()) {
  counters_->AddMethods();
  counters_->AddStore();
  counters_->AddPlans();
  counters_->AddReports();
  prometheus::BuildGauge()
      .Name("fusion_build_info")
      .Help("1; what runs is in the labels.")
      .Register(counters_->registry)
      .Add({{"version", version}, {"compiler", compiler}})
      .Set(1);
}

Metrics::~Metrics() = default;

void Metrics::OnGet(EntryKind kind, Tier tier, Nanoseconds took) {
  counters_->gets[static_cast<size_t>(kind)][static_cast<size_t>(tier)]->Increment();
  counters_->get_seconds[static_cast<size_t>(kind)]->Observe(ToMilliseconds(took) / 1e3);
}

void Metrics::OnPut(const absl::Status& status, Nanoseconds took) {
  (status.ok() ? counters_->puts_ok : counters_->puts_failed)->Increment();
  counters_->put_seconds->Observe(ToMilliseconds(took) / 1e3);
}

void Metrics::OnStarted(RpcMethod method) {
  counters_->methods[Index(method)].started.Get().Increment();
  counters_->methods[Index(method)].received.Get().Increment();
}

void Metrics::OnFinished(const RpcRecord& record) {
  MethodCounters& method = counters_->methods[Index(record.method)];
  int code = static_cast<int>(record.status.code());
  method.handled[static_cast<size_t>(code < kCodes ? code : 2)].Get().Increment();
  method.seconds.Get(kCallBuckets).Observe(ToMilliseconds(record.took) / 1e3);
  if (record.messages_sent > 0) {
    method.sent.Get().Increment(static_cast<double>(record.messages_sent));
  }
  if (!record.tenant.empty()) counters_->tenants.Add(record.tenant);
  counters_->queue_seconds->Observe(ToMilliseconds(record.queued) / 1e3);
  if (record.method == RpcMethod::kReportLatency) {
    counters_->ingested.at(IngestionResult(record.status))->Increment();
  }
  if (record.cache.has_value()) {
    counters_->outcomes[static_cast<size_t>(*record.cache)]->Increment();
  }
  if (record.warm.has_value()) {
    (*record.warm ? counters_->warm_hits : counters_->warm_misses)->Increment();
  }
  for (const StageTime& stage : record.stages) {
    counters_->Stage(stage.stage)->Observe(ToMilliseconds(stage.took) / 1e3);
  }
}

void Metrics::OnKernelMade(const KernelArtifact& kernel) {
  counters_->compile_seconds->Observe(kernel.compile_ms / 1e3);
  counters_->check_seconds->Observe(kernel.check_ms / 1e3);
}

std::string Metrics::Text(const ServerSnapshot& now) const {
  std::vector<MetricFamily> families = counters_->registry.Collect();
  ReadStores(now, &families);
  ReadMeasurements(now, &families);
  ReadWorkers(now, &families);
  ReadFailures(now, &families);
  ReadSkippedPasses(now, &families);
  ReadRegistered(now, &families);
  ReadSearches(now, &families);
  ReadFlow(now, &families);
  ReadConnections(now, &families);
  ReadTenants(counters_->tenants, &families);
  ReadCertificate(now, &families);
  ReadProcess(&families);
  return prometheus::TextSerializer().Serialize(families);
}

int64_t Metrics::started(RpcMethod method) const {
  const Counter* counter = counters_->methods[Index(method)].started.Peek();
  return counter == nullptr ? 0 : static_cast<int64_t>(counter->Value());
}

CodeCounts Metrics::finished(RpcMethod method) const {
  CodeCounts counts;
  for (int code = 0; code < kCodes; ++code) {
    const Counter* counter =
        counters_->methods[Index(method)].handled[static_cast<size_t>(code)].Peek();
    if (counter != nullptr) counts[CodeName(code)] = static_cast<int64_t>(counter->Value());
  }
  return counts;
}

}  // namespace fusion
