#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/cancel.h"
#include "core/base/logging.h"
#include "core/base/thread_pool.h"
#include "core/bundle/answer.h"
#include "core/cache/lru_map.h"
#include "core/cache/single_flight.h"
#include "core/cache/store.h"
#include "core/device/device_spec.h"
#include "core/import/graph_source.h"
#include "core/pipeline/kernel_builds.h"
#include "core/pipeline/plan_request.h"
#include "core/pipeline/stage.h"

namespace fusion {

struct PlanReply {
  std::shared_ptr<const StoredPlan> stored;
  Binding binding;
  std::vector<KernelStatus> kernels;  // by plan kernel
  CacheOutcome cache = CacheOutcome::kMiss;
  std::vector<StageTime> stages;
  std::vector<Dump> dumps;
  std::vector<std::string> warnings;
};

/// One kernel by key, or why there is none.
struct KernelReply {
  KernelState state = KernelState::kPending;
  std::shared_ptr<const KernelArtifact> kernel;  // kReady
  absl::Status why;  // kFailed: the reason; kPending: what ended the wait
};

struct PipelineOptions {
  /// Threads that plan. More than one, so that a large graph does not hold up the small ones.
  int plan_threads = 2;
  /// Time that planning one graph may take.
  Nanoseconds plan_limit = std::chrono::seconds(60);
  /// Threads that wait for workers: plans being compiled at the same time.
  int build_threads = 16;
  /// Plans that may wait for a thread; more are refused with ResourceExhausted.
  size_t queue_limit = 256;
  /// How long a failed kernel is not tried again.
  Nanoseconds failure_ttl = std::chrono::minutes(10);
  /// Sources of plans kept in memory, for plans whose kernels are missing.
  int64_t planned_bytes = int64_t{64} << 20;
  /// Graphs of recent requests, so that equal bytes are not imported again.
  int64_t resolved_bytes = int64_t{64} << 20;
};

/// The way of a request: bytes -> graph -> key -> store, or plan -> kernels -> workers -> store.
/// Equal requests at once plan and compile once; what a caller that goes away has started is
/// finished for the next one. Thread-safe. Everything referred to outlives it.
class FusionPipeline {
 public:
  FusionPipeline(const PipelineOptions& options, std::vector<DeviceSpec> specs,
                 const Toolchain& toolchain, Store& store, WorkerPool& workers, Logger& logger,
                 const Clock& clock = Clock::Real());
  /// Stop().
  ~FusionPipeline();

  /// Errors are the caller's to read: they name node, tensor or field. See fusion_service.proto for
  /// the codes.
  absl::StatusOr<PlanReply> PlanFusion(const PlanRequest& request, const CancelToken& cancel);

  /// Waits for a kernel that is being compiled.
  KernelReply GetKernel(const Digest& key, const CancelToken& cancel);

  /// Tells planning under way to end, and waits until everything has ended; stop the worker pool
  /// first to make that soon. No call may be running or come.
  void Stop();

  /// Requests that found equal work under way, and that wait now.
  int64_t shared_total() const { return plans_.shared_total() + builds_.shared_total(); }
  int64_t waiters() const { return plans_.waiters() + builds_.waiters(); }

 private:
  /// What planning needs, apart from its request.
  struct Work {
    Graph graph;  // canonical
    DeviceSpec device;
    PlanOptions options;
    std::string full_key;
    Digest key;
  };
  using WorkPtr = std::shared_ptr<const Work>;
  /// Nodes that fuse with nothing, and why.
  using Alone = std::map<NodeId, std::string>;
  /// A request after import: the work and the caller's words.
  struct Resolved {
    WorkPtr work;
    Binding binding;
    std::vector<std::string> warnings;
  };
  /// A plan and how to make its kernels.
  struct Planned {
    std::shared_ptr<const StoredPlan> stored;
    std::vector<CompileJob> jobs;
    std::vector<StageTime> times;
  };
  /// The kernels of a plan on their way.
  struct Batch {
    std::vector<std::shared_ptr<const KernelArtifact>> kernels;  // by plan kernel; null: not yet
    std::vector<bool> found;                                     // in the store
    std::vector<absl::Status> results;
    std::vector<std::pair<size_t, KernelBuilds::Claim>> claims;  // those under way
  };
  /// A plan with all its kernels.
  struct Built {
    std::shared_ptr<const StoredPlan> stored;
    std::vector<std::shared_ptr<const KernelArtifact>> kernels;  // by plan kernel
    std::vector<bool> found;                                     // in the store before
    std::vector<std::string> warnings;
  };
  using PlannedOr = absl::StatusOr<std::shared_ptr<const Planned>>;
  using BuiltOr = absl::StatusOr<std::shared_ptr<const Built>>;

  absl::StatusOr<std::shared_ptr<const Resolved>> Resolve(const PlanRequest& request,
                                                          StageContext& stages);
  absl::StatusOr<WorkPtr> MakeWork(const CanonicalGraph& canonical, DeviceSpec device,
                                   const PlanRequest& request) const;
  static Alone AloneOf(const fusion::Plan& plan);
  PlannedOr Plan(const Work& work, Alone alone, StageContext& stages);
  PlannedOr PlanForAll(const Work& work, const Alone& alone);
  PlannedOr PlanOnce(const WorkPtr& work, const Alone& alone, StageContext& stages,
                     PlanReply* reply);
  std::shared_ptr<Batch> StartKernels(const Planned& planned);
  BuiltOr Build(const Work& work, std::shared_ptr<const Planned> planned,
                std::shared_ptr<Batch> batch);
  absl::Status IsolateFailures(const fusion::Plan& plan, const std::vector<absl::Status>& results,
                               Alone* alone) const;
  absl::Status Answer(const WorkPtr& work, const PlanRequest& request, StageContext& stages,
                      PlanReply* reply);
  absl::Status AnswerBuilt(const WorkPtr& work, const PlanRequest& request,
                           std::shared_ptr<const Planned> planned, StageContext& stages,
                           PlanReply* reply);
  bool DescribeKernels(PlanReply* reply);
  /// `plan` may be null: the kernels alone.
  void Publish(std::shared_ptr<const StoredPlan> plan, const Batch& batch,
               std::vector<std::string>* warnings);
  void Remember(const Digest& key, std::shared_ptr<const Planned> planned);
  std::shared_ptr<const Planned> Remembered(const Digest& key, const Alone& alone);

  const PipelineOptions options_;
  const std::vector<DeviceSpec> specs_;
  const Toolchain& toolchain_;
  Store& store_;
  Logger& logger_;
  const Clock& clock_;
  KernelBuilds kernel_builds_;
  CancelToken stopping_;  // of what no single caller can end
  ThreadPool plan_threads_;
  ThreadPool build_threads_;
  SingleFlight<Digest, Planned> plans_;
  SingleFlight<Digest, Built> builds_;
  mutable Mutex mutex_;
  LruMap<Digest, std::shared_ptr<const Planned>> planned_ ABSL_GUARDED_BY(mutex_);
  LruMap<Digest, std::shared_ptr<const Resolved>> resolved_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusion
