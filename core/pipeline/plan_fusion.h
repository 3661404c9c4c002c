#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/logging.h"
#include "core/base/threads/cancel.h"
#include "core/bundle/answer.h"
#include "core/cache/store.h"
#include "core/cache/store_archive.h"
#include "core/device/device_spec.h"
#include "core/learn/epoch_book.h"
#include "core/pipeline/plan_builds.h"
#include "core/pipeline/planning.h"
#include "core/pipeline/requests/plan_request.h"
#include "core/pipeline/requests/resolve.h"
#include "core/pipeline/requests/stage.h"

namespace fusion {

struct PlanReply {
  std::shared_ptr<const StoredPlan> stored;
  Binding binding;
  std::vector<KernelStatus> kernels;  // by plan kernel
  CacheOutcome cache = CacheOutcome::kMiss;
  std::vector<StageTime> stages;
  std::vector<Dump> dumps;
  std::shared_ptr<const PlanLock> lock;  // if DumpKind::kLock was requested, else null
  std::vector<std::string> warnings;
  std::optional<MissExplanation> miss;  // if PlanRequest::explain_miss
};

struct PipelineOptions {
  /// Use more than one thread, so that a large graph does not delay small ones.
  PlanningOptions planning;
  PlanBuildsOptions builds;
  /// Limit of the cache of imported graphs, which saves the import of equal request bytes.
  int64_t recalled_bytes = int64_t{64} << 20;
  /// Rules for every request; they precede the request's own rules.
  Rules rules;
  /// Registered kernels for every request that they apply to.
  RegisteredKernels registered;
  /// Requests with a higher level get this one and a warning.
  int max_opt_level = kMaxOptLevel;
  /// Constants for planning, and the stored plans that are to be made again. May be null; else it
  /// outlives the pipeline.
  EpochBook* epochs = nullptr;
};

/// The path of a request: bytes -> graph -> key -> store, or plan -> kernels -> workers -> store.
///
/// Equal concurrent requests are planned and compiled once. If all callers leave, work goes on for
/// PlanBuildsOptions::linger and serves later requests. A call blocks its thread until it is
/// answered: planning takes at most twice PlanningOptions::limit (once in the queue, once running),
/// compiling as long as the worker pool takes. Thread-safe. Everything referred to outlives it.
class FusionPipeline {
 public:
  FusionPipeline(const PipelineOptions& options, std::vector<DeviceSpec> specs,
                 const Toolchain& toolchain, Store& store, WorkerPool& workers, Logger& logger,
                 const Clock& clock = Clock::Real());
  /// Calls Stop().
  ~FusionPipeline();

  /// Errors name node, tensor or field in the caller's words; fusion_service.proto lists the codes.
  /// `observer` (may be null) gets the progress.
  absl::StatusOr<PlanReply> PlanFusion(const PlanRequest& request, const CancelToken& cancel,
                                       StageObserver* observer = nullptr);

  /// As PlanBuilds::GetKernel.
  KernelReply GetKernel(const Digest& key, const CancelToken& cancel,
                        std::optional<std::string_view> tenant = std::nullopt);

  /// Implements ArchiveTrust::remake: plans `claimed` again from its key, and compiles and checks
  /// its kernels if the archive has any. Stores its own result, whatever the archive contains.
  ///
  /// A plan is refused (RemadePlan::refused) if its key does not hold everything that planning
  /// needs (see Resolver::WorkOf), if this server cannot plan or compile it, or if plan or kernels
  /// differ from this server's. Errors: kCancelled or kDeadlineExceeded if `cancel` ends;
  /// ResourceExhausted or Unavailable if nothing can be stored.
  absl::StatusOr<RemadePlan> Remake(const ClaimedPlan& claimed, const CancelToken& cancel);

  /// Whether a request with this plan should reach PlanFusion, though its answer is known: the plan
  /// is to be made again (EpochBook::Want). The request is answered with the plan as it is, and a
  /// background thread makes the new one. Locked and pinned plans, and those whose tiles were
  /// measured, stay. Cheap.
  bool IsRenewalWanted(const Digest& plan) const {
    return epochs_ != nullptr && epochs_->IsWanted(plan);
  }

  /// What these constants would change about a stored plan. FailedPrecondition: see
  /// Resolver::WorkOf; other errors as of PlanFusion.
  absl::StatusOr<EpochPlan> Preview(const StoredPlan& stored, const PlanCalibration& calibration,
                                    const CancelToken& cancel);

  /// Kernel failures that are remembered for a while; quarantined kernels are not counted.
  int64_t failures() const { return builds_.failures(); }

  /// As PlanBuilds::EndSearches.
  void EndSearches() { builds_.EndSearches(); }

  /// Cancels planning and waits until everything has ended; stop the worker pool first to make that
  /// quick. No call may be running or follow.
  void Stop();

  /// Forgets remembered plans, and failures: of these kernels, or all of them, planning overruns
  /// included. Quarantined kernels are also tried again. A stored plan that works around such a
  /// kernel stays. Returns the number of forgotten failures.
  int64_t Forget(const std::vector<Digest>& kernels, bool all) {
    return builds_.ForgetFailures(kernels, all) + planning_.Forget(/*overruns=*/all);
  }

  /// The registered kernels and their states.
  std::vector<RegisteredCapability> Registered() const { return registry_.Describe(); }

  /// Requests that joined equal work under way; requests that wait now.
  int64_t shared_total() const { return planning_.shared_total() + builds_.shared_total(); }
  int64_t waiters() const { return planning_.waiters() + builds_.waiters(); }
  int64_t abandoned_total() const { return builds_.abandoned_total(); }
  /// Bytes of cached imports (at most PipelineOptions::recalled_bytes) and of cached plans (at most
  /// PlanningOptions::remembered_bytes).
  int64_t recalled_bytes() const { return resolver_.recalled_bytes(); }
  int64_t remembered_bytes() const { return planning_.remembered_bytes(); }
  /// Reduces both caches to a quarter of their limits.
  void MakeRoom() {
    resolver_.MakeRoom();
    planning_.MakeRoom();
  }
  SearchStats searches() const { return builds_.searches(); }
  /// As Planning::skipped_passes.
  std::map<std::string, int64_t> skipped_passes() const { return planning_.skipped_passes(); }

 private:
  // What the store has for a request.
  struct Known {
    std::shared_ptr<const StoredPlan> stored = nullptr;  // null: nothing
    bool complete = false;                               // `stored` has all its kernels
    bool searches = false;  // its search goes on, because this request compiles
    bool answers = false;   // it is the whole answer, texts aside

    explicit operator bool() const { return stored != nullptr; }
  };

  absl::Status Answer(const WorkPtr& asked, const PlanRequest& request, StageContext& stages,
                      PlanReply* reply);
  absl::StatusOr<Known> LookUp(const Work& work, const PlanRequest& request, PlanReply* reply);
  void WarnUnwritten(PlanReply* reply);
  WorkPtr WorkAfter(const Known& known, const WorkPtr& asked);
  void StartRenewal(const WorkPtr& asked, const std::shared_ptr<const StoredPlan>& old);
  RenewalOutcome Renew(const WorkPtr& work, const StoredPlan& old, const Renewal& renewal);
  PlannedOr Plan(const WorkPtr& work, const UnfusedNodes& unfused_nodes, StageContext& stages,
                 PlanReply* reply);
  absl::Status AnswerPlanned(const Planned& planned, StageContext& stages, PlanReply* reply);
  absl::Status AnswerBuilt(const WorkPtr& work, const PlanRequest& request,
                           const std::shared_ptr<const Planned>& planned, const Known& known,
                           StageContext& stages, PlanReply* reply);
  absl::Status DumpBuilt(const WorkPtr& asked, const Work& work, const Planned& planned,
                         const UnfusedNodes& unfused, StageContext& stages, PlanReply* reply);

  const Toolchain& toolchain_;
  Store& store_;
  const Clock& clock_;
  Resolver resolver_;
  KernelRegistry registry_;
  EpochBook* const epochs_;
  Planning planning_;
  PlanBuilds builds_;
  CancelToken stopping_;
  ThreadPool renewals_;  // one thread: what is in use works already
};

}  // namespace fusion
