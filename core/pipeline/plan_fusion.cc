#include "core/pipeline/plan_fusion.h"

#include <algorithm>
#include <map>

#include "core/pipeline/requests/callers_words.h"
#include "core/pipeline/requests/miss.h"
#include "core/pipeline/requests/warnings.h"
#include "core/wire/options/tile_search.h"

namespace fusion {
namespace {

// Graphs are shown as they come from import; all else comes from the plan's making.
bool NeedsPlanning(const DumpKinds& dumps) {
  return std::any_of(dumps.begin(), dumps.end(),
                     [](DumpKind kind) { return kind != DumpKind::kGraph; });
}

// The finished search of a stored plan; null if it has none.
std::shared_ptr<const TileSearch> SearchOf(const Plan& plan) {
  if (plan.search.level == 0 || plan.search.state == TileSearchState::kPending) return nullptr;
  return std::make_shared<const TileSearch>(plan.search);
}

bool SameSearch(const TileSearch* a, const TileSearch* b) {
  return a == nullptr || b == nullptr ? a == b : DigestOf(*a) == DigestOf(*b);
}

}  // namespace

FusionPipeline::FusionPipeline(const PipelineOptions& options, std::vector<DeviceSpec> specs,
                               const Toolchain& toolchain, Store& store, WorkerPool& workers,
                               Logger& logger, const Clock& clock)
    : toolchain_(toolchain),
      store_(store),
      clock_(clock),
      resolver_(std::move(specs), toolchain, options.recalled_bytes, options.rules,
                options.registered, options.max_opt_level, options.planning.job,
                options.planning.memory),
      registry_(options.registered, logger),
      epochs_(options.epochs),
      planning_(options.planning, toolchain, logger, clock),
      builds_(options.builds, toolchain, planning_, registry_, store, workers, logger, clock),
      stopping_(clock),
      renewals_("renew", /*threads=*/1, /*queue_limit=*/64) {}

FusionPipeline::~FusionPipeline() { Stop(); }

void FusionPipeline::Stop() {
  stopping_.Cancel();
  planning_.Stop();
  builds_.Stop();
  renewals_.Stop();
}

// The path of a request, top to bottom.
absl::StatusOr<PlanReply> FusionPipeline::PlanFusion(const PlanRequest& request,
                                                     const CancelToken& cancel,
                                                     StageObserver* observer) {
  StageContext stages{cancel, clock_, request.dumps};
  stages.observer = observer;
  stages.owner = request.owner;
  ASSIGN_OR_RETURN(std::shared_ptr<const Resolved> resolved, resolver_.Resolve(request, stages));
  if (request.mode != PlanMode::kPlanOnly) {
    RETURN_IF_ERROR(CanCompile(resolved->work->device, toolchain_));
  }
  PlanReply reply;
  reply.warnings = resolved->warnings;
  if (request.explain_miss) {
    // Before the plan is made and stored, which may evict others.
    ASSIGN_OR_RETURN(reply.miss, RunStage(stages, "miss", [&] {
                       return absl::StatusOr<MissExplanation>(
                           ExplainMiss(resolved->work->full_key, store_, cancel, clock_));
                     }));
  }
  absl::Status answered = Answer(resolved->work, request, stages, &reply);
  if (!answered.ok()) {
    return InCallersWords(answered, resolved->binding.nodes, resolved->work->options.rules,
                          request.options.rules);
  }
  for (std::string& warning : WarningsOf(reply.stored->plan, reply.kernels)) {
    reply.warnings.push_back(std::move(warning));
  }
  reply.binding = resolved->binding;
  reply.stages = std::move(stages.times);
  reply.dumps = std::move(stages.dumps);
  return reply;
}

// As the picture of core/README.md#life-of-a-request: lookup, plan, build, publish.
absl::Status FusionPipeline::Answer(const WorkPtr& asked, const PlanRequest& request,
                                    StageContext& stages, PlanReply* reply) {
  ASSIGN_OR_RETURN(const Known known,
                   RunStage(stages, "lookup", [&] { return LookUp(*asked, request, reply); }));
  if (known.answers) WarnUnwritten(reply);
  if (known.answers && request.mode != PlanMode::kPlanOnly) StartRenewal(asked, known.stored);
  if (known.answers && !NeedsPlanning(request.dumps)) return absl::OkStatus();

  const WorkPtr work = WorkAfter(known, asked);
  const UnfusedNodes unfused = known ? UnfusedNodesOf(known.stored->plan) : UnfusedNodes();
  ASSIGN_OR_RETURN(std::shared_ptr<const Planned> planned, Plan(work, unfused, stages, reply));
  if (known.answers) return absl::OkStatus();
  if (request.mode == PlanMode::kPlanOnly) return AnswerPlanned(*planned, stages, reply);
  RETURN_IF_ERROR(AnswerBuilt(work, request, planned, known, stages, reply));
  return DumpBuilt(asked, *work, *planned, unfused, stages, reply);
}

// Puts what the store has into the reply.
absl::StatusOr<FusionPipeline::Known> FusionPipeline::LookUp(const Work& work,
                                                             const PlanRequest& request,
                                                             PlanReply* reply) {
  Found<StoredPlan> found = store_.GetPlan({work.key, work.full_key});
  if (!found) return Known();
  reply->stored = found.value;
  reply->cache = found.tier == Tier::kMemory ? CacheOutcome::kHitMemory : CacheOutcome::kHitStore;
  reply->kernels = builds_.Describe(found.value->plan);
  Known known{.stored = found.value};
  known.complete =
      std::all_of(reply->kernels.begin(), reply->kernels.end(),
                  [](const KernelStatus& kernel) { return kernel.state == KernelState::kReady; });
  if (known.complete) registry_.NoteReady(found.value->plan);
  const bool compile = request.mode != PlanMode::kPlanOnly;
  known.searches = compile && GoesOn(found.value->plan.search);
  known.answers = (known.complete || !compile) && !known.searches;
  return known;
}

void FusionPipeline::WarnUnwritten(PlanReply* reply) {
  const std::string unwritten = store_.WhyUnwritten(reply->stored->key);
  if (!unwritten.empty()) reply->warnings.push_back(StrCat(kNotStored, unwritten));
}

// A plan whose kernels or texts are missing is made again with the same restrictions.
WorkPtr FusionPipeline::WorkAfter(const Known& known, const WorkPtr& asked) {
  if (!known) {
    const WorkPtr work = WithUnused(asked, registry_.Quarantined());
    if (epochs_ == nullptr || work->options.lock != nullptr) return work;
    return WithCalibration(
        work, epochs_->ForNewPlan(work->options.tenant,
                                  {work->device.name, work->device.arch, work->device.threads},
                                  work->key));
  }
  WorkPtr work = WithCalibration(WithUnused(asked, UnusedOf(known.stored->plan)),
                                 known.stored->plan.calibration);
  return known.searches ? work : WithSearch(work, SearchOf(known.stored->plan));
}

PlannedOr FusionPipeline::Plan(const WorkPtr& work, const UnfusedNodes& unfused_nodes,
                               StageContext& stages, PlanReply* reply) {
  Nanoseconds start = clock_.Now();
  DumpKinds dumps = NeedsPlanning(stages.wanted) ? stages.wanted : DumpKinds();
  PlanOrigin origin;
  ASSIGN_OR_RETURN(std::shared_ptr<const Planned> planned,
                   planning_.Plan(work, unfused_nodes, dumps, stages.cancel, &origin,
                                  stages.observer, stages.owner));
  // Keep only the texts of the plan in the answer.
  std::erase_if(stages.dumps, [](const Dump& dump) { return dump.kind != DumpKind::kGraph; });
  stages.dumps.insert(stages.dumps.end(), planned->dumps.begin(), planned->dumps.end());
  reply->lock = planned->lock;
  if (origin == PlanOrigin::kMade) {
    stages.times.insert(stages.times.end(), planned->times.begin(), planned->times.end());
    return planned;
  }
  bool remembered = origin == PlanOrigin::kRemembered;
  stages.times.push_back(
      {remembered ? "plan (remembered)" : "plan (shared)", clock_.Now() - start});
  if (reply->cache == CacheOutcome::kMiss) {
    reply->cache = remembered ? CacheOutcome::kHitMemory : CacheOutcome::kSharedFlight;
  }
  return planned;
}

absl::Status FusionPipeline::AnswerPlanned(const Planned& planned, StageContext& stages,
                                           PlanReply* reply) {
  reply->stored = planned.stored;
  reply->kernels = builds_.Describe(reply->stored->plan);
  return RunStage(stages, "publish",
                  [&] {
                    builds_.Publish(reply->stored, &reply->warnings, stages.owner);
                    return absl::StatusOr<bool>(true);
                  })
      .status();
}

absl::Status FusionPipeline::AnswerBuilt(const WorkPtr& work, const PlanRequest& request,
                                         const std::shared_ptr<const Planned>& planned,
                                         const Known& known, StageContext& stages,
                                         PlanReply* reply) {
  bool by_deadline = request.mode == PlanMode::kByDeadline;
  CancelToken patience(stages.cancel, clock_.Now() + request.ready_within);
  reply->stored = planned->stored;  // the one whose kernels are started now
  BuiltOr built = RunStage(stages, kCompileStage, [&] {
    return builds_.Build(work, planned, by_deadline ? patience : stages.cancel, stages.observer,
                         /*goes_on=*/by_deadline, stages.owner);
  });
  if (by_deadline && absl::IsDeadlineExceeded(built.status()) && stages.cancel.Check().ok()) {
    reply->kernels = builds_.Describe(reply->stored->plan);  // the build goes on
    return absl::OkStatus();
  }
  if (!built.ok()) return built.status();
  if (const Nanoseconds searched = (*built)->searched; searched > Nanoseconds(0)) {
    // Only the part within this request, if the build began earlier.
    Nanoseconds& took = stages.times.back().took;
    const Nanoseconds own = std::min(searched, took);
    took -= own;
    stages.times.push_back({std::string(kSearchStage), own});
  }
  reply->warnings.insert(reply->warnings.end(), (*built)->warnings.begin(),
                         (*built)->warnings.end());
  if (known.complete && (*built)->unsearched.has_value()) {
    reply->stored = known.stored;  // no search ran now; that plan has what earlier ones found
    reply->kernels = builds_.Describe(reply->stored->plan);
    return absl::OkStatus();
  }
  reply->stored = (*built)->stored;
  reply->kernels.clear();
  for (size_t k = 0; k < (*built)->kernels.size(); ++k) {
    reply->kernels.push_back(ReadyStatus(*(*built)->kernels[k], (*built)->found[k]));
  }
  return absl::OkStatus();
}

// Texts must be of the plan that is answered. That is not `planned` if a kernel failed and its
// nodes were planned apart, or if other tiles are faster.
absl::Status FusionPipeline::DumpBuilt(const WorkPtr& asked, const Work& work,
                                       const Planned& planned, const UnfusedNodes& unfused,
                                       StageContext& stages, PlanReply* reply) {
  if (!NeedsPlanning(stages.wanted)) return absl::OkStatus();
  const fusion::Plan& built = reply->stored->plan;
  const UnfusedNodes apart = UnfusedNodesOf(built);
  const std::map<std::string, std::string> unused = UnusedOf(built);
  const std::shared_ptr<const TileSearch> search = SearchOf(built);
  if (apart == unfused && unused == UnusedOf(planned.stored->plan) &&
      SameSearch(work.search.get(), search.get())) {
    return absl::OkStatus();
  }
  const WorkPtr made = WithCalibration(WithUnused(asked, unused), built.calibration);
  return Plan(WithSearch(made, search), apart, stages, reply).status();
}

KernelReply FusionPipeline::GetKernel(const Digest& key, const CancelToken& cancel,
                                      std::optional<std::string_view> tenant) {
  return builds_.GetKernel(key, cancel, tenant);
}

}  // namespace fusion
