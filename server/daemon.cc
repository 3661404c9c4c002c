#include "server/daemon.h"

#include <filesystem>
#include <thread>

#include "core/base/file.h"
#include "core/cache/memory_store.h"
#include "core/cache/metered_store.h"
#include "core/cache/rocks_store.h"
#include "core/cache/tiered_store.h"
#include "core/compile/toolchain.h"
#include "core/compile/worker_pool.h"
#include "core/pipeline/plan_fusion.h"
#include "server/admission.h"
#include "server/grpc_server.h"

namespace fusion {
namespace {

class Nothing final : public RpcObserver {
 public:
  void OnStarted(RpcMethod) override {}
  void OnFinished(const RpcRecord&) override {}
};

Nanoseconds Seconds(double seconds) {
  return std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(seconds));
}

// Members are destroyed in the reverse order: what is used lives longer than its users.
class RunningDaemon final : public Daemon {
 public:
  RunningDaemon(const ServerConfig& config, const Programs& programs, Logger& logger)
      : config_(config), programs_(programs), logger_(logger) {}
  ~RunningDaemon() override { Stop(); }

  absl::Status Start() {
    absl::StatusOr<TempDir> scratch = TempDir::Create(config_.scratch_dir, "fusiond-");
    if (!scratch.ok()) return Annotate(scratch.status(), "--scratch");
    scratch_ = std::make_unique<TempDir>(*std::move(scratch));
    RETURN_IF_ERROR(OpenToolchain());
    RETURN_IF_ERROR(OpenStore());
    StartWorkers();
    ASSIGN_OR_RETURN(std::vector<DeviceSpec> specs, BuiltInSpecs());
    pipeline_ = std::make_unique<FusionPipeline>(PipelineOptions{}, std::move(specs), *toolchain_,
                                                 *store_, *workers_, logger_);
    admission_ =
        std::make_unique<Admission>(AdmissionLimits{.threads = config_.request_threads,
                                                    .queue = config_.request_queue,
                                                    .inflight_bytes = config_.max_inflight_bytes});
    ASSIGN_OR_RETURN(grpc_, GrpcServer::Start({.listen = config_.listen,
                                               .max_request_bytes = config_.max_request_bytes},
                                              *pipeline_, *admission_, observer_, logger_));
    logger_.Info("listening", {{"addresses", StrJoin(grpc_->addresses(), " ")},
                               {"compiler", toolchain_->version()},
                               {"store", config_.store_dir}});
    return absl::OkStatus();
  }

  void Stop() override {
    if (grpc_ != nullptr) {
      grpc_->SetServing(false);
      std::this_thread::sleep_for(Seconds(config_.drain_seconds));
      grpc_->Shutdown(Seconds(config_.grace_seconds));
    }
    if (admission_ != nullptr) admission_->Stop();
    if (workers_ != nullptr) workers_->Stop(Seconds(config_.grace_seconds));
    if (pipeline_ != nullptr) pipeline_->Stop();
    grpc_ = nullptr;
  }

 private:
  absl::Status OpenToolchain() {
    runner_ = MakeProcessRunner(programs_.exec);
    ToolchainOptions options;
    options.compiler = config_.compiler;
    options.scratch_dir = scratch_->path();
    ASSIGN_OR_RETURN(Toolchain toolchain, Toolchain::Open(options, *runner_));
    toolchain_ = std::make_unique<Toolchain>(std::move(toolchain));
    return absl::OkStatus();
  }

  absl::Status OpenStore() {
    std::unique_ptr<Store> store =
        std::make_unique<MemoryStore>(config_.memory_limit_bytes, logger_);
    if (!config_.store_dir.empty()) {
      RETURN_IF_ERROR(MakeDirectories(config_.store_dir));
      RocksStoreOptions options;
      options.dir = StrCat(config_.store_dir, "/db");
      options.budget_bytes = config_.store_limit_bytes;
      ASSIGN_OR_RETURN(std::unique_ptr<RocksStore> disk, RocksStore::Open(options, logger_));
      store = std::make_unique<TieredStore>(std::move(store), std::move(disk));
    }
    store_ = std::move(store);
    return absl::OkStatus();
  }

  void StartWorkers() {
    WorkerPoolOptions options;
    options.workers = config_.workers;
    options.queue_limit = static_cast<size_t>(config_.compile_queue);
    options.command_limit = Seconds(config_.compile_seconds);
    options.job_limit = Seconds(2 * config_.compile_seconds);
    options.log_dir =
        StrCat(config_.store_dir.empty() ? scratch_->path() : config_.store_dir, "/compile-logs");
    workers_ = std::make_unique<WorkerPool>(
        options, *toolchain_,
        MakeWorkerStarter({.worker_path = programs_.worker,
                           .exec_path = programs_.exec,
                           .scratch_dir = scratch_->path(),
                           .memory_bytes = config_.worker_memory_bytes}),
        logger_);
  }

  const ServerConfig config_;
  const Programs programs_;
  Logger& logger_;
  std::unique_ptr<TempDir> scratch_;
  std::unique_ptr<CommandRunner> runner_;
  std::unique_ptr<Toolchain> toolchain_;
  Nothing observer_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<WorkerPool> workers_;
  std::unique_ptr<FusionPipeline> pipeline_;
  std::unique_ptr<Admission> admission_;
  std::unique_ptr<GrpcServer> grpc_;
};

}  // namespace

Programs SiblingPrograms() {
  std::error_code error;
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  std::string dir = self.parent_path().string();
  return {.worker = StrCat(dir, "/fusion-worker"), .exec = StrCat(dir, "/fusion-exec")};
}

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(const ServerConfig& config,
                                                      const Programs& programs, Logger& logger) {
  auto daemon = std::make_unique<RunningDaemon>(config, programs, logger);
  RETURN_IF_ERROR(daemon->Start());
  return std::unique_ptr<Daemon>(std::move(daemon));
}

}  // namespace fusion
