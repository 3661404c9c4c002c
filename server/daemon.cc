#include "server/daemon.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "core/base/files/file.h"
#include "core/base/files/launcher.h"
#include "core/base/files/scratch.h"
#include "core/base/files/server_state.h"
#include "core/base/threads/named_thread.h"
#include "core/cache/memory/memory_records.h"
#include "core/cache/memory/memory_store.h"
#include "core/cache/metered_store.h"
#include "core/cache/rocks/disk_stores.h"
#include "core/cache/tiered_store.h"
#include "core/compile/quarantine.h"
#include "core/compile/toolchain.h"
#include "core/compile/worker_pool.h"
#include "core/device/host_cpu.h"
#include "core/learn/latency_book.h"
#include "core/learn/race_timings.h"
#include "core/pipeline/plan_fusion.h"
#include "core/plan/rules/rule_match.h"
#include "core/wire/options/registered_kernels.h"
#include "core/wire/options/rules.h"
#include "server/access/authenticator.h"
#include "server/access/operator_check.h"
#include "server/access/signer.h"
#include "server/admission/admission.h"
#include "server/admission/event.h"
#include "server/admission/log_sample.h"
#include "server/capabilities.h"
#include "server/config/trusted_files.h"
#include "server/learning.h"
#include "server/observe/metrics.h"
#include "server/observe/status_of.h"
#include "server/observe/status_page.h"
#include "server/options_of.h"
#include "server/pages/operator_pages.h"
#include "server/pages/web.h"
#include "server/rpc/grpc_server.h"
#include "server/transport/certificates.h"
#include "server/transport/connection_listener.h"
#include "server/transport/listen_address.h"

namespace fusion {
namespace {

constexpr int64_t kMaxRecordBytes = 64 << 10;
// Log lines per second for calls that were refused, failed or took work: an attacker must not be
// able to fill the disk with them.
constexpr int64_t kOtherLogLines = 1000;

// Additional threads for tenants with few running calls. Chosen: their short calls are served at
// once, and one more graph is planned at a time.
constexpr int kSparePlannings = 1;
constexpr int kSpareBuilds = 4;
int SpareOf(int request_threads) { return std::max(1, request_threads / 8); }

Nanoseconds Seconds(double seconds) {
  return std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(seconds));
}

// Members are destroyed in reverse order, so each is declared after what it uses.
class RunningDaemon final : public Daemon {
 public:
  RunningDaemon(const ServerConfig& config, const Programs& programs, Logger& logger)
      : programs_(programs),
        logger_(logger),
        facts_{.config = config},
        usual_log_(config.log_usual) {}
  ~RunningDaemon() override { Stop(); }

  absl::Status Start() {
    absl::StatusOr<Scratch> scratch = Scratch::Create(config().scratch_dir, "fusiond-");
    if (!scratch.ok()) return Annotate(scratch.status(), "--scratch");
    scratch_ = std::make_unique<Scratch>(*std::move(scratch));
    // The cheapest and most frequent failures first.
    RETURN_IF_ERROR(CheckTrust());
    RETURN_IF_ERROR(OpenAccess());
    RETURN_IF_ERROR(ReadRules());
    RETURN_IF_ERROR(ReadKernels());
    RETURN_IF_ERROR(OpenStore());
    RETURN_IF_ERROR(OpenToolchain());
    RETURN_IF_ERROR(OpenQuarantine());
    RETURN_IF_ERROR(ProbeSandboxLevel());
    metrics_ = std::make_unique<Metrics>(std::string(ServerVersion()), toolchain_->version());
    store_ = std::make_unique<MeteredStore>(std::move(tiers_), *metrics_);
    StartWorkers();
    pipeline_options_.recalled_bytes = RecentBytesOf(config());
    pipeline_options_.planning.remembered_bytes = RecentBytesOf(config());
    pipeline_options_.planning.failure_ttl = Seconds(config().failure_ttl_seconds);
    pipeline_options_.builds.failure_ttl = Seconds(config().failure_ttl_seconds);
    pipeline_options_.builds.quarantine = quarantine_.get();
    ASSIGN_OR_RETURN(std::vector<DeviceSpec> specs, BuiltInSpecs());
    pipeline_options_.builds.search_window = 2 * static_cast<size_t>(config().workers);
    pipeline_options_.max_opt_level = config().max_opt_level;
    const Nanoseconds linger = config().abandoned_build_seconds < 0
                                   ? Interest::kForEver
                                   : Seconds(config().abandoned_build_seconds);
    pipeline_options_.planning.linger = linger;
    pipeline_options_.planning.job = {.bytes = config().planning_bytes,
                                      .steps = config().planning_steps};
    job_memory_ = std::make_unique<JobMemory>(config().max_inflight_bytes / 4 * 3);
    pipeline_options_.planning.memory = job_memory_.get();
    pipeline_options_.planning.spare_threads = kSparePlannings;
    pipeline_options_.builds.spare_threads = kSpareBuilds;
    pipeline_options_.builds.linger = linger;
    book_ = std::make_unique<LatencyBook>(*store_, *measurements_, *timings_);
    race_timings_ = std::make_unique<RaceTimings>(*book_, specs, HostCpu());
    pipeline_options_.builds.on_timed = [this](const KernelTimings& t) {
      race_timings_->Add(t);
      learning_->OnTiming(t);
    };
    ASSIGN_OR_RETURN(learning_, Learning::Open(config(), logger_));
    pipeline_options_.epochs = learning_->epochs();
    capabilities_ = CapabilitiesOf(config(), specs, *toolchain_, pipeline_options_);
    pipeline_ = std::make_unique<FusionPipeline>(pipeline_options_, std::move(specs), *toolchain_,
                                                 *store_, *workers_, logger_);
    learning_->Start(*store_, *book_, *pipeline_);
    top_plans_ = std::make_unique<RecentTopPlans>(*book_);
    admission_ = std::make_unique<Admission>(
        AdmissionLimits{.threads = config().request_threads,
                        .spare_threads = SpareOf(config().request_threads),
                        .queue = config().request_queue,
                        .inflight_bytes = config().max_inflight_bytes,
                        .streams = config().max_streams,
                        .tenants = config().tenant_limits});
    warm_ = std::make_unique<ResponseCache>(*store_, RecentBytesOf(config()));
    ASSIGN_OR_RETURN(grpc_, GrpcServer::Start(GrpcOptions(), Parts()));
    facts_.addresses = grpc_->addresses();
    reloader_ = NamedThread("file-watcher", [this] { WatchFiles(); });
    RETURN_IF_ERROR(StartAdmin());
    complete_ = true;
    ready_ = true;
    LogListening();
    return absl::OkStatus();
  }

  void Stop() override {
    if (stopped_) return;
    stopped_ = true;
    bool was_ready = ready_.exchange(false);
    if (grpc_ != nullptr) grpc_->SetServing(false);
    stopping_.Set();
    if (reloader_.joinable()) reloader_.join();
    Nanoseconds grace = Seconds(config().grace_seconds);
    if (grpc_ != nullptr) {
      if (was_ready) hurried_.WaitFor(Seconds(config().drain_seconds));
      admission_->Close();
      // Calls and workers would otherwise wait for searches for tiles.
      if (pipeline_ != nullptr) pipeline_->EndSearches();
      WaitForCalls(grace);
      grpc_->Shutdown(Nanoseconds(0));
    }
    if (admission_ != nullptr) admission_->Stop();
    if (learning_ != nullptr) learning_->Stop();  // it plans with the pipeline
    if (workers_ != nullptr) workers_->Stop(hurried_.IsSet() ? Nanoseconds(0) : grace);
    if (pipeline_ != nullptr) pipeline_->Stop();
  }

  void Hurry() override { hurried_.Set(); }
  void Reload() override { ReloadFiles(/*always=*/true); }

 private:
  const ServerConfig& config() const { return facts_.config; }

  ServiceParts Parts() {
    return {.pipeline = *pipeline_,
            .store = *store_,
            .book = *book_,
            .epochs = [this](std::optional<std::string_view> t) { return learning_->List(t); },
            .train = [this](const CancelToken& cancel) { return learning_->Train(cancel); },
            .roll_back = [this](int64_t epoch,
                                std::string_view why) { return learning_->RollBack(epoch, why); },
            .capabilities =
                [this] {
                  Capabilities now = capabilities_;
                  now.sandbox = SandboxLevel();
                  now.registered = pipeline_->Registered();
                  now.authentication = authenticator_->Kinds();
                  now.signing_keys = signer_->key_ids();
                  return now;
                },
            .status = [this](const CancelToken& cancel) { return Status(cancel); },
            .authenticator = *authenticator_,
            .signer = *signer_,
            .import_keys = import_keys_,
            .admission = *admission_,
            .job_memory = *job_memory_,
            .warm = *warm_,
            .observer = *metrics_,
            .logger = logger_,
            .usual_log = usual_log_,
            .other_log = other_log_,
            .max_request_bytes = config().max_request_bytes,
            .call_limit = Seconds(config().call_seconds),
            .tenant_namespaces = config().tenant_namespaces};
  }

  GrpcServerOptions GrpcOptions() {
    const int64_t connections = ConnectionLimit(config().max_connections);
    if (connections < config().max_connections) {
      logger_.Warning("few_file_descriptors", {{"connections", connections},
                                               {"wanted", config().max_connections},
                                               {"expected", "a higher RLIMIT_NOFILE"}});
    }
    return {.listen = config().listen,
            .socket_access = config().socket_access,
            .certificates = certificates_.get(),
            .max_connections = connections,
            .connection_idle = Seconds(config().connection_idle_seconds),
            .transport_bytes = config().max_inflight_bytes * 3 / 2,
            .unusual_bytes = config().max_inflight_bytes,
            .answer_bytes = config().max_inflight_bytes / 2,
            .reflection = config().reflection};
  }

  // With --insecure-permissions the server starts though other users can write its files.
  absl::Status Insist(const absl::Status& untrusted) {
    if (untrusted.ok() || !config().insecure_permissions) return untrusted;
    logger_.Warning("insecure_permissions", {{"reason", Message(untrusted)}});
    return absl::OkStatus();
  }

  absl::Status CheckTrust() {
    for (const absl::Status& untrusted : UntrustedFiles(config())) {
      RETURN_IF_ERROR(Insist(untrusted));
    }
    return Insist(CheckTrustedWork("--scratch", scratch_->path()));
  }

  absl::Status OpenAccess() {
    RETURN_IF_ERROR(CheckExposure(config()));
    if (!config().tls_cert.empty()) {
      ASSIGN_OR_RETURN(certificates_, Certificates::Open(CertificateFilesOf(config()), logger_));
    }
    absl::StatusOr<std::unique_ptr<Authenticator>> authenticator =
        Authenticator::Open({.tokens_file = config().tokens,
                             .certificates = !config().tls_client_ca.empty(),
                             .trusted_only = !config().insecure_permissions},
                            logger_);
    if (!authenticator.ok()) return Annotate(authenticator.status(), "--tokens");
    authenticator_ = *std::move(authenticator);
    ASSIGN_OR_RETURN(std::vector<SigningKey> keys, ReadSigningKeys(config().signing_keys));
    signer_ = std::make_unique<Signer>(std::move(keys));
    ASSIGN_OR_RETURN(import_keys_, ReadImportKeys(config().import_keys));
    return absl::OkStatus();
  }

  // Reads changed files within about a second.
  void WatchFiles() {
    while (!stopping_.WaitFor(std::chrono::seconds(1))) ReloadFiles(/*always=*/false);
  }

  void ReloadFiles(bool always) {
    MutexLock lock(&reload_mutex_);
    if (certificates_ != nullptr) certificates_->Reload(always);
    authenticator_->Reload(always);
  }

  absl::Status OpenStore() {
    const int64_t bytes = config().memory_limit_bytes;
    if (config().store_dir.empty()) {
      tiers_ = std::make_unique<MemoryStore>(bytes, logger_);
      measurements_ = std::make_unique<MemoryMeasurements>();
      timings_ = std::make_unique<MemoryTimings>();
      return absl::OkStatus();
    }
    absl::Status made = MakeDirectories(config().store_dir);
    // On a full disk the server starts anyway; OpenDiskStores makes it once there is room.
    if (!made.ok() && !absl::IsResourceExhausted(made)) return Annotate(made, "--store");
    RETURN_IF_ERROR(Insist(CheckTrustedWork("--store", config().store_dir)));
    absl::StatusOr<DiskStores> disk = OpenDiskStores(StoreOptionsOf(config()), logger_);
    if (!disk.ok()) return Annotate(disk.status(), "--store");
    measurements_ = std::move(disk->measurements);
    timings_ = std::move(disk->timings);
    tiers_ = std::make_unique<TieredStore>(
        std::make_unique<MemoryStore>(bytes, LargestEntryBytes(bytes), logger_),
        std::move(disk->store));
    return absl::OkStatus();
  }

  absl::Status ReadRules() {
    if (config().rules_file.empty()) return absl::OkStatus();
    absl::StatusOr<Rules> rules = ReadRulesFile(config().rules_file, CheckRuleOps);
    if (!rules.ok()) return Annotate(rules.status(), "--rules-file");
    pipeline_options_.rules = *std::move(rules);
    return absl::OkStatus();
  }

  absl::Status ReadKernels() {
    if (config().kernels.empty()) return absl::OkStatus();
    absl::StatusOr<RegisteredKernels> kernels =
        ReadRegisteredKernels(config().kernels, CheckRuleOps);
    if (!kernels.ok()) return Annotate(kernels.status(), "--kernels");
    for (const absl::Status& untrusted : UntrustedSources(*kernels)) {
      RETURN_IF_ERROR(Insist(untrusted));
    }
    pipeline_options_.registered = *std::move(kernels);
    return absl::OkStatus();
  }

  absl::Status OpenToolchain() {
    runner_ = MakeProcessRunner(programs_.exec);
    const ToolchainOptions options = ToolchainOptionsOf(config(), scratch_->path());
    const std::string record_path =
        config().store_dir.empty() ? "" : StrCat(config().store_dir, "/toolchain.json");
    absl::StatusOr<Toolchain> toolchain = Toolchain::Open(options, *runner_);
    if (toolchain.ok()) {
      toolchain_ = std::make_unique<Toolchain>(*std::move(toolchain));
      KeepRecord(record_path);
      return absl::OkStatus();
    }
    absl::Status why = Annotate(toolchain.status(), "--compiler");
    if (!absl::IsFailedPrecondition(why)) return why;
    // Planning and stored kernels need no compiler.
    logger_.Warning("no_compiler", {{"reason", Message(why)}});
    const std::string record =
        record_path.empty() ? "" : ReadFile(record_path, kMaxRecordBytes).value_or("");
    why = ServerPrecondition("nothing can be compiled here: ", Message(why),
                             "; install a compiler, or name another, and restart");
    toolchain_ = std::make_unique<Toolchain>(Toolchain::Without(options, why, record));
    return absl::OkStatus();
  }

  // Only a start without a compiler needs it, so a failure on a full disk is ignored.
  void KeepRecord(const std::string& path) {
    const std::string record = toolchain_->Record();
    if (path.empty() || ReadFile(path, kMaxRecordBytes).value_or("") == record) return;
    absl::Status kept = ReplaceFile(path, record);
    if (!kept.ok()) logger_.Warning("toolchain_not_recorded", {{"reason", Message(kept)}});
  }

  absl::Status OpenQuarantine() {
    const std::string& store = config().store_dir;
    absl::StatusOr<std::unique_ptr<Quarantine>> quarantine =
        Quarantine::Open(store.empty() ? "" : StrCat(store, "/quarantine"));
    if (!quarantine.ok()) return Annotate(quarantine.status(), "--store");
    quarantine_ = *std::move(quarantine);
    return absl::OkStatus();
  }

  WorkerProcessOptions WorkerOptions() const {
    return WorkerOptionsOf(config(), programs_, scratch_->path(), *toolchain_);
  }

  absl::Status ProbeSandboxLevel() {
    absl::StatusOr<SandboxProbe> probe = ProbeSandbox(WorkerOptions(), *runner_);
    if (!probe.ok()) return Annotate(probe.status(), "--sandbox");
    sandbox_ = *std::move(probe);
    if (IsWeakSandbox(sandbox_.level)) {
      // An operator who chose "none" needs no warning.
      logger_.Log(config().sandbox == Sandbox::kNone ? LogLevel::kInfo : LogLevel::kWarning,
                  "weak_sandbox",
                  {{"sandbox", sandbox_.level}, {"expected", "landlock and seccomp at least"}});
    }
    return absl::OkStatus();
  }

  std::string SandboxLevel() const {
    const std::string said = workers_->Stats().sandbox;
    return said.empty() ? sandbox_.level : said;
  }

  void StartWorkers() {
    WorkerPoolOptions options;
    options.workers = config().workers;
    options.queue_limit = static_cast<size_t>(config().compile_queue);
    options.command_limit = Seconds(config().compile_seconds);
    // Compiling, linking and checking; each takes about as long as compiling at most.
    options.job_limit = 3 * options.command_limit;
    options.log_dir =
        StrCat(config().store_dir.empty() ? scratch_->path() : config().store_dir, "/compile-logs");
    options.on_made = [this](const KernelArtifact& kernel) { metrics_->OnKernelMade(kernel); };
    WorkerProcessOptions process = WorkerOptions();
    process.sandbox = sandbox_.sandbox;
    workers_ =
        std::make_unique<WorkerPool>(options, *toolchain_, MakeWorkerStarter(process), logger_);
  }

  absl::Status StartAdmin() {
    if (config().admin.empty()) return absl::OkStatus();
    AdminPages pages{
        .metrics = [this] { return metrics_->Text(Snapshot()); },
        .status = [this]() -> std::string {
          if (!started_) return "{\"ready\": false}\n";  // facts_ is not complete
          return StatusPage(facts_, *toolchain_, *metrics_, Snapshot());
        },
        .ready = [this] { return ready_.load(); },
        .compile_log = [this](const Digest& key) { return workers_->logs().Read(key); }};
    ASSIGN_OR_RETURN(admin_, StartAdminPort(config().admin, config().admin_hosts, std::move(pages),
                                            OperatorPages(PagesForPeople())));
    facts_.admin_address = admin_->address();
    started_ = true;
    return absl::OkStatus();
  }

  OperatorParts PagesForPeople() {
    return {.store = *store_,
            .book = *book_,
            .runner = *runner_,
            .complete = [this] { return complete_.load(); },
            .status = [this](const CancelToken& cancel) { return Status(cancel); },
            .snapshot = [this] { return Snapshot(); },
            .epochs = [this] { return learning_->List(std::nullopt); },
            .version = std::string(ServerVersion()),
            .compiler = toolchain_->version(),
            .isas = SupportedIsas(*toolchain_),
            .allow =
                [this](std::string_view authorization) {
                  return CheckOperator(*authenticator_, authorization,
                                       std::chrono::system_clock::now());
                }};
  }

  // Waits until all answers have been read. gRPC's own wait would last as long as an idle client
  // keeps its connection.
  void WaitForCalls(Nanoseconds limit) {
    Nanoseconds end = Clock::Real().Now() + limit;
    while (admission_->calls() + grpc_->calls() > 0 && Clock::Real().Now() < end) {
      if (hurried_.WaitFor(std::chrono::milliseconds(2))) return;
    }
  }

  std::optional<std::chrono::system_clock::time_point> CertificateEnd() const {
    if (certificates_ == nullptr) return std::nullopt;
    return certificates_->now()->expires;
  }

  ServerSnapshot Snapshot() const {
    const ConnectionCounts connections = grpc_->connections();
    return {.uptime = Clock::Real().Now() - start_,
            .ready = ready_.load(),
            .tiers = store_->Stats(),
            .disk = store_->Facts(),
            .measurements = measurements_->Stats(),
            .timings = timings_->Stats(),
            .learning = learning_->Stats(),
            .workers = workers_->Stats(),
            .searches = pipeline_->searches(),
            .worker_limit = config().workers,
            .compile_queue_limit = config().compile_queue,
            .flights_waiting = pipeline_->waiters(),
            .flights_shared = pipeline_->shared_total(),
            .builds_abandoned = pipeline_->abandoned_total(),
            .calls = admission_->calls(),
            .call_limit = config().request_threads + config().request_queue,
            .calls_queued = admission_->queued(),
            .inflight_bytes = admission_->bytes(),
            .inflight_limit_bytes = config().max_inflight_bytes,
            .planning_bytes = job_memory_->used_bytes(),
            .planning_limit_bytes = job_memory_->limit_bytes(),
            .plannings_ended = job_memory_->ended(),
            .streams = admission_->streams(),
            .stream_limit = config().max_streams,
            .connections = connections.open,
            .connection_limit = connections.limit,
            .connections_refused = connections.refused,
            .connections_closed = connections.closed,
            .admin_connections = started_ ? admin_->counts() : HttpServer::Counts{},
            .refused = Refusals(),
            .tenant_bytes = admission_->tenant_bytes(),
            .warm_answers = warm_->size(),
            .recent_bytes = {{"answers", warm_->bytes()},
                             {"graphs", pipeline_->recalled_bytes()},
                             {"plans", pipeline_->remembered_bytes()}},
            .recent_limit_bytes = RecentBytesOf(config()),
            .registered = pipeline_->Registered(),
            .authentication = authenticator_->Kinds(),
            .tokens = authenticator_->tokens(),
            .identities = authenticator_->identities(),
            .certificate_expires = CertificateEnd(),
            .certificate_subject = certificates_ == nullptr ? "" : certificates_->now()->subject,
            .signing_keys = signer_->key_ids(),
            .sandbox = SandboxLevel(),
            .quarantine = quarantine_->List(),
            .failures = pipeline_->failures(),
            .skipped_passes = pipeline_->skipped_passes()};
  }

  // Calls are served before all parts are there.
  ServerStatus Status(const CancelToken& cancel) {
    if (!complete_) return {.version = std::string(ServerVersion())};
    ServerStatus out = StatusOf(Snapshot(), *metrics_, Clock::Real());
    out.top_plans = top_plans_->Get(cancel);
    return out;
  }

  std::map<std::string, int64_t> Refusals() const {
    std::map<std::string, int64_t> out;
    for (Refused reason : kRefusedReasons) {
      out[std::string(RefusedName(reason))] = admission_->refused(reason);
    }
    return out;
  }

  void LogListening() {
    logger_.Info("listening", {{"version", ServerVersion()},
                               {"addresses", StrJoin(facts_.addresses, " ")},
                               {"admin", facts_.admin_address},
                               {"compiler", toolchain_->version()},
                               {"isas", SupportedIsas(*toolchain_)},
                               {"sandbox", sandbox_.level},
                               {"store", config().store_dir},
                               {"authentication", authenticator_->Kinds()},
                               {"tls", certificates_ != nullptr},
                               {"quarantined_kernels", quarantine_->size()},
                               {"registered_kernels", pipeline_options_.registered.size()},
                               {"workers", config().workers}});
  }

  const Programs programs_;
  Logger& logger_;
  ServerFacts facts_;
  const Nanoseconds start_ = Clock::Real().Now();
  std::atomic<bool> started_{false};
  std::atomic<bool> complete_{false};  // every part is there
  std::atomic<bool> ready_{false};
  bool stopped_ = false;
  Event stopping_;
  Event hurried_;
  LogSample usual_log_;
  LogSample other_log_{kOtherLogLines};
  Mutex reload_mutex_;                          // one reader of files at a time
  std::unique_ptr<Certificates> certificates_;  // null: no TLS
  std::unique_ptr<Authenticator> authenticator_;
  std::unique_ptr<Signer> signer_;
  std::vector<SigningKey> import_keys_;
  std::thread reloader_;
  std::unique_ptr<Scratch> scratch_;
  std::unique_ptr<CommandRunner> runner_;
  std::unique_ptr<Toolchain> toolchain_;
  SandboxProbe sandbox_;
  std::unique_ptr<Quarantine> quarantine_;
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<Store> tiers_;  // until store_ owns it
  std::unique_ptr<Store> store_;
  std::unique_ptr<MeasurementStore> measurements_;
  std::unique_ptr<TimingStore> timings_;
  std::unique_ptr<WorkerPool> workers_;
  std::unique_ptr<JobMemory> job_memory_;  // of pipeline_
  std::unique_ptr<Learning> learning_;
  PipelineOptions pipeline_options_;
  Capabilities capabilities_;  // of CapabilitiesOf: some fields are empty
  std::unique_ptr<LatencyBook> book_;
  std::unique_ptr<RaceTimings> race_timings_;
  std::unique_ptr<RecentTopPlans> top_plans_;
  std::unique_ptr<FusionPipeline> pipeline_;
  std::unique_ptr<ResponseCache> warm_;
  std::unique_ptr<Admission> admission_;
  std::unique_ptr<GrpcServer> grpc_;
  std::unique_ptr<HttpServer> admin_;  // answers while the rest drains
};

}  // namespace

Programs SiblingPrograms() {
  return {.worker = SiblingProgram("fusion-worker"), .exec = SiblingProgram("fusion-exec")};
}

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(const ServerConfig& config,
                                                      const Programs& programs, Logger& logger) {
  auto daemon = std::make_unique<RunningDaemon>(config, programs, logger);
  RETURN_IF_ERROR(daemon->Start());
  return std::unique_ptr<Daemon>(std::move(daemon));
}

}  // namespace fusion
