#include "server/observe/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "core/base/threads/mutex.h"
#include "server/admission/tenant_counts.h"
#include "server/observe/metric_readings.h"

namespace fusion {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildHistogram;
using prometheus::Counter;
using prometheus::Family;
using prometheus::Histogram;
using prometheus::Labels;
using prometheus::MetricFamily;

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

// What became of the reports of a call, by label of fusion_measurements_ingested_total.
std::array<std::pair<std::string_view, int64_t>, 5> IngestionResults(const ReportCounts& reports) {
  return {{{"ok", reports.ok},
           {"duplicate", reports.duplicate},
           {"invalid", reports.invalid},
           {"unknown_plan", reports.unknown_plan},
           {"error", reports.error}}};
}

// A series that is absent until it has counted something: a server has more than ten methods with
// seventeen codes each, and few of these occur. Thread-safe.
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
  for (const auto& [result, count] : IngestionResults({})) {
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
  if (!record.tenant.empty()) {
    counters_->tenants.Add(record.tenant, record.took, absl::IsResourceExhausted(record.status));
  }
  counters_->queue_seconds->Observe(ToMilliseconds(record.queued) / 1e3);
  ReportCounts reports = record.reports;
  const bool unread = record.method == RpcMethod::kReportLatency && reports.all() == 0;
  if (unread) reports.AddRefused(record.status);
  for (const auto& [result, count] : IngestionResults(reports)) {
    counters_->ingested.at(result)->Increment(static_cast<double>(count));
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
  AddReadings(now, counters_->tenants, &families);
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

void Metrics::AddTo(ServerStatus* status) const {
  for (RpcMethod method : kRpcMethods) {
    MethodCounts counts{.method = std::string(RpcMethodName(method)),
                        .started = started(method),
                        .finished = finished(method)};
    if (counts.started == 0) continue;
    const Histogram* seconds = counters_->methods[Index(method)].seconds.Peek();
    if (seconds != nullptr) counts.seconds = seconds->Collect().histogram.sample_sum;
    status->methods.push_back(std::move(counts));
  }
  const auto value = [](const Counter* counter) { return static_cast<int64_t>(counter->Value()); };
  for (CacheOutcome outcome : kOutcomes) {
    status->plans[std::string(CacheOutcomeName(outcome))] =
        value(counters_->outcomes[static_cast<size_t>(outcome)]);
  }
  status->warm_hits = value(counters_->warm_hits);
  status->warm_misses = value(counters_->warm_misses);
}

}  // namespace fusion
