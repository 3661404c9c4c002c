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
  std::shared_ptr<const PlanLock> lock;  // if DumpKind::kLock was asked for, else null
  std::vector<std::string> warnings;
  std::optional<MissExplanation> miss;  // if it was asked for
};

struct PipelineOptions {
  /// More than one thread, so that a large graph does not hold up the small ones.
  PlanningOptions planning;
  PlanBuildsOptions builds;
  /// Graphs of recent requests, so that equal bytes are not imported again.
  int64_t recalled_bytes = int64_t{64} << 20;
  /// For every request, before its own.
  Rules rules;
  /// For every request that they apply to.
  RegisteredKernels registered;
  /// Requests with a higher level are planned with this one, and told so.
  int max_opt_level = kMaxOptLevel;
};

/// The way of a request: bytes -> graph -> key -> store, or plan -> kernels -> workers -> store.
/// Equal requests at once plan and compile once; what a caller that goes away has started goes on
/// for the next one, until nobody has wanted it for PlanBuildsOptions::linger. A call holds its
/// thread until it is answered: for planning at most twice PlanningOptions::limit (once in the
/// queue, once at work), for compiling as long as the worker pool takes. Thread-safe. Everything
/// referred to outlives it.
class FusionPipeline {
 public:
  FusionPipeline(const PipelineOptions& options, std::vector<DeviceSpec> specs,
                 const Toolchain& toolchain, Store& store, WorkerPool& workers, Logger& logger,
                 const Clock& clock = Clock::Real());
  /// Stop().
  ~FusionPipeline();

  /// Errors are the caller's to read: they name node, tensor or field. See fusion_service.proto for
  /// the codes. `observer` (may be null) is told how far it is.
  absl::StatusOr<PlanReply> PlanFusion(const PlanRequest& request, const CancelToken& cancel,
                                       StageObserver* observer = nullptr);

  /// As PlanBuilds::GetKernel.
  KernelReply GetKernel(const Digest& key, const CancelToken& cancel,
                        std::optional<std::string_view> tenant = std::nullopt);

  /// ArchiveTrust::remake: plans `claimed` again from its key, and where the file has kernels of it
  /// compiles and checks them; what is made is stored, whatever the file says. Refused are plans
  /// whose keys do not hold all that planning needs (see Resolver::WorkOf), and those of which
  /// plan or kernels differ from what is made. Fails as PlanFusion does when `cancel` ends, and
  /// with ResourceExhausted or Unavailable if nothing can be stored.
  absl::StatusOr<RemadePlan> Remake(const ClaimedPlan& claimed, const CancelToken& cancel);

  /// Failures of kernels that are remembered for a while; those in quarantine are not among them.
  int64_t failures() const { return builds_.failures(); }

  /// Ends searches for tiles under way, with what they have found, and those that come.
  void EndSearches() { builds_.EndSearches(); }

  /// Tells planning under way to end, and waits until everything has ended; stop the worker pool
  /// first to make that soon. No call may be running or come.
  void Stop();

  /// Plans again what was planned lately, and tries again what failed lately: these kernels, or
  /// everything, planning that took too long included; kernels in quarantine, too. A plan that was
  /// made without such a kernel stays as it is. How many failures were remembered.
  int64_t Forget(const std::vector<Digest>& kernels, bool all) {
    return builds_.ForgetFailures(kernels, all) + planning_.Forget(/*overruns=*/all);
  }

  /// The registered kernels, and what became of them.
  std::vector<RegisteredCapability> Registered() const { return registry_.Describe(); }

  /// Requests that found equal work under way, and that wait now.
  int64_t shared_total() const { return planning_.shared_total() + builds_.shared_total(); }
  int64_t waiters() const { return planning_.waiters() + builds_.waiters(); }
  int64_t abandoned_total() const { return builds_.abandoned_total(); }
  /// Bytes of what is kept of recent requests: PipelineOptions::recalled_bytes at most, and
  /// PlanningOptions::remembered_bytes.
  int64_t recalled_bytes() const { return resolver_.recalled_bytes(); }
  int64_t remembered_bytes() const { return planning_.remembered_bytes(); }
  SearchStats searches() const { return builds_.searches(); }
  /// As Planning::skipped_passes.
  std::map<std::string, int64_t> skipped_passes() const { return planning_.skipped_passes(); }

 private:
  absl::Status Answer(const WorkPtr& asked, const PlanRequest& request, StageContext& stages,
                      PlanReply* reply);
  absl::StatusOr<bool> LookUp(const Work& work, PlanReply* reply);
  PlannedOr Plan(const WorkPtr& work, const UnfusedNodes& unfused_nodes, StageContext& stages,
                 PlanReply* reply);
  absl::Status AnswerBuilt(const WorkPtr& work, const PlanRequest& request,
                           std::shared_ptr<const Planned> planned,
                           std::shared_ptr<const StoredPlan> known, StageContext& stages,
                           PlanReply* reply);

  const Toolchain& toolchain_;
  Store& store_;
  const Clock& clock_;
  Resolver resolver_;
  KernelRegistry registry_;
  Planning planning_;
  PlanBuilds builds_;
};

}  // namespace fusion
