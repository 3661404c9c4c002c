#include "core/pipeline/plan_fusion.h"

#include "absl/strings/cord.h"
#include "core/base/kernel_abi.h"
#include "core/codegen/backend.h"
#include "core/pipeline/plan_key.h"

namespace fusion {
namespace {

// The planner knows canonical positions only: puts the caller's name into its message.
absl::Status NameFailedNode(const absl::Status& status, const std::vector<std::string>& names) {
  constexpr std::string_view kNameless = "node \"\"";
  absl::optional<absl::Cord> payload = status.GetPayload(kFailedNode);
  std::string_view message = Message(status);
  if (!payload.has_value() || !message.starts_with(kNameless)) return status;
  auto node = static_cast<size_t>(std::stoll(std::string(*payload)));
  if (node >= names.size()) return status;
  return absl::Status(status.code(),
                      StrCat("node ", QuoteShort(names[node]), message.substr(kNameless.size())));
}

absl::Status NameKernel(const absl::Status& status, const PlanKernel& kernel) {
  return Annotate(status, StrCat("kernel ", kernel.symbol, " (", kernel.label, ")"));
}

// The failure of a kernel that cannot be taken apart.
absl::Status BlameNode(const absl::Status& status, const PlanKernel& kernel, NodeId node) {
  if (!absl::IsUnimplemented(status)) {
    // Ours; a time-out too: it was the kernel's, not the caller's.
    return Internal(Message(NameKernel(status, kernel)));
  }
  if (node == kNoNode) return status;
  // In the form NameFailedNode knows.
  absl::Status named = Unimplemented("node \"\" (", kernel.label, "): ", Message(status));
  named.SetPayload(kFailedNode, absl::Cord(StrCat(node)));
  return named;
}

KernelStatus ReadyStatus(const KernelArtifact& kernel, bool cached) {
  return {.key = kernel.key,
          .state = KernelState::kReady,
          .content = kernel.content,
          .bytes = static_cast<int64_t>(kernel.binary.size()),
          .check = kernel.check,
          .cached = cached,
          .compile_ms = kernel.compile_ms};
}

void WarnUnfused(const Plan& plan, PlanReply* reply) {
  if (plan.fallbacks.empty()) return;
  reply->warnings.push_back(
      StrCat(plan.fallbacks.size(), " nodes are not fused: a kernel that held them failed"));
}

void WarnUnverified(const Plan& plan, PlanReply* reply) {
  std::map<std::string, int> kernels_by_reason;
  for (size_t k = 0; k < reply->kernels.size(); ++k) {
    const KernelStatus& status = reply->kernels[k];
    if (status.state == KernelState::kReady && !status.check.verified) {
      ++kernels_by_reason[status.check.reason];
    }
  }
  for (const auto& [reason, kernels] : kernels_by_reason) {
    reply->warnings.push_back(
        StrCat(kernels, " of ", plan.kernels.size(), " kernels unverified: ", reason));
  }
}

}  // namespace

FusionPipeline::FusionPipeline(const PipelineOptions& options, std::vector<DeviceSpec> specs,
                               const Toolchain& toolchain, Store& store, WorkerPool& workers,
                               Logger& logger, const Clock& clock)
    : options_(options),
      specs_(std::move(specs)),
      toolchain_(toolchain),
      store_(store),
      logger_(logger),
      clock_(clock),
      kernel_builds_(workers, options.failure_ttl, clock),
      stopping_(clock),
      plan_threads_(options.plan_threads, options.queue_limit),
      build_threads_(options.build_threads, options.queue_limit),
      plans_(plan_threads_),
      builds_(build_threads_),
      planned_(options.planned_bytes),
      resolved_(options.resolved_bytes) {}

FusionPipeline::~FusionPipeline() { Stop(); }

void FusionPipeline::Stop() {
  stopping_.Cancel();
  build_threads_.Stop();
  plan_threads_.Stop();
}

// The way of a request, top to bottom.
absl::StatusOr<PlanReply> FusionPipeline::PlanFusion(const PlanRequest& request,
                                                     const CancelToken& cancel) {
  StageContext stages{cancel, clock_, request.dumps};
  ASSIGN_OR_RETURN(std::shared_ptr<const Resolved> resolved, Resolve(request, stages));
  if (request.mode != PlanMode::kPlanOnly) {
    RETURN_IF_ERROR(toolchain_.SupportsIsa(resolved->work->device.isa));
  }
  PlanReply reply;
  reply.warnings = resolved->warnings;
  absl::Status answered = Answer(resolved->work, request, stages, &reply);
  if (!answered.ok()) return NameFailedNode(answered, resolved->binding.nodes);
  WarnUnfused(reply.stored->plan, &reply);
  WarnUnverified(reply.stored->plan, &reply);
  reply.binding = resolved->binding;
  reply.stages = std::move(stages.times);
  reply.dumps = std::move(stages.dumps);
  return reply;
}

// From bytes to a canonical graph and its key; bytes seen lately are recalled.
absl::StatusOr<std::shared_ptr<const FusionPipeline::Resolved>> FusionPipeline::Resolve(
    const PlanRequest& request, StageContext& stages) {
  bool recallable = request.source.op_graph == nullptr && request.dumps.empty();
  Digest digest;
  if (recallable) {
    using Recalled = absl::StatusOr<std::shared_ptr<const Resolved>>;
    ASSIGN_OR_RETURN(std::shared_ptr<const Resolved> known,
                     RunStage(stages, "recall", [&]() -> Recalled {
                       digest = Sha256(RequestKey(request));
                       MutexLock lock(&mutex_);
                       std::shared_ptr<const Resolved>* found = resolved_.Find(digest);
                       return found == nullptr ? nullptr : *found;
                     }));
    if (known != nullptr) return known;
  }
  auto resolved = std::make_shared<Resolved>();
  std::string warning;
  const PlanOptions& options = request.options;
  ASSIGN_OR_RETURN(DeviceSpec device, RunStage(stages, "target", [&] {
                     return ResolveTarget(specs_, request.target, &warning);
                   }));
  if (!warning.empty()) resolved->warnings.push_back(warning);
  ASSIGN_OR_RETURN(Graph graph, RunStage(stages, "import", [&] {
                     return ImportGraph(request.source, {.dim_bindings = options.dim_bindings,
                                                         .batch_size = options.hints.batch_size,
                                                         .keep_outputs = options.keep_outputs});
                   }));
  ASSIGN_OR_RETURN(CanonicalGraph canonical,
                   RunStage(stages, "canonicalise", [&] { return Canonicalise(graph); }));
  ASSIGN_OR_RETURN(resolved->work, RunStage(stages, "key", [&] {
                     return MakeWork(canonical, std::move(device), request);
                   }));
  resolved->binding = {std::move(canonical.input_names), std::move(canonical.output_names),
                       std::move(canonical.weight_names), std::move(canonical.node_names)};
  if (recallable) {
    // A graph without its constants is a few times as long as its bytes.
    auto bytes = static_cast<int64_t>(4 * request.source.onnx_model.size() +
                                      resolved->work->full_key.size());
    for (const Tensor& t : resolved->work->graph.tensors()) {
      if (t.value != nullptr) bytes += t.value->byte_size();
    }
    std::vector<std::pair<Digest, std::shared_ptr<const Resolved>>> forgotten;  // dies unlocked
    MutexLock lock(&mutex_);
    forgotten = resolved_.Insert(digest, resolved, bytes);
  }
  return std::shared_ptr<const Resolved>(std::move(resolved));
}

absl::StatusOr<FusionPipeline::WorkPtr> FusionPipeline::MakeWork(const CanonicalGraph& canonical,
                                                                 DeviceSpec device,
                                                                 const PlanRequest& request) const {
  ASSIGN_OR_RETURN(const Backend* backend, FindBackend(device.backend));
  auto work = std::make_shared<Work>();
  const PlanOptions& options = request.options;
  work->full_key = PlanKey({.graph = canonical.key_text,
                            .device = device.KeyText(),
                            .fusion = options.fusion,
                            .numerics = options.numerics,
                            .high_memory_pressure = IsHighPressure(options.hints.memory_pressure),
                            .high_compute_pressure = IsHighPressure(options.hints.compute_pressure),
                            .planner_version = kPlannerVersion,
                            .backend = std::string(backend->name()),
                            .codegen_version = backend->version(),
                            .abi_version = FUSION_KERNEL_ABI_VERSION,
                            .toolchain = toolchain_.KeyText(device.isa, options.numerics)});
  work->key = Sha256(work->full_key);
  work->graph = canonical.graph;
  work->device = std::move(device);
  work->options = options;
  return WorkPtr(std::move(work));
}

// From the store, or made and published.
absl::Status FusionPipeline::Answer(const WorkPtr& work, const PlanRequest& request,
                                    StageContext& stages, PlanReply* reply) {
  ASSIGN_OR_RETURN(bool complete, RunStage(stages, "lookup", [&]() -> absl::StatusOr<bool> {
                     Found<StoredPlan> found = store_.GetPlan({work->key, work->full_key});
                     if (!found) return false;
                     reply->stored = found.value;
                     reply->cache = found.tier == Tier::kMemory ? CacheOutcome::kHitMemory
                                                                : CacheOutcome::kHitStore;
                     return DescribeKernels(reply);
                   }));
  bool compile = request.mode != PlanMode::kPlanOnly;
  bool known = reply->stored != nullptr;
  bool answered = known && (complete || !compile);
  if (answered && request.dumps.empty()) return absl::OkStatus();

  // What is known but for its kernels or its texts is made again as it was.
  Alone alone = known ? AloneOf(reply->stored->plan) : Alone();
  std::shared_ptr<const Planned> planned;
  if (!request.dumps.empty()) {
    // Texts come from the values between stages, which no store keeps: for this caller alone.
    ASSIGN_OR_RETURN(planned, Plan(*work, alone, stages));
  } else {
    ASSIGN_OR_RETURN(planned, PlanOnce(work, alone, stages, reply));
  }
  if (answered) return absl::OkStatus();
  if (!known) reply->stored = planned->stored;
  if (compile) return AnswerBuilt(work, request, std::move(planned), stages, reply);
  DescribeKernels(reply);
  return RunStage(stages, "publish",
                  [&] {
                    Publish(planned->stored, {}, &reply->warnings);
                    return absl::StatusOr<bool>(true);
                  })
      .status();
}

absl::Status FusionPipeline::AnswerBuilt(const WorkPtr& work, const PlanRequest& request,
                                         std::shared_ptr<const Planned> planned,
                                         StageContext& stages, PlanReply* reply) {
  bool by_deadline = request.mode == PlanMode::kByDeadline;
  CancelToken patience(stages.cancel, clock_.Now() + request.ready_within);
  BuiltOr built = RunStage(stages, "compile", [&] {
    // Started here, not in the flight: whoever gets an answer must find the kernels it names.
    std::shared_ptr<Batch> batch = StartKernels(*planned);
    return builds_.Run(work->key, by_deadline ? patience : stages.cancel,
                       [this, work, planned, batch] { return Build(*work, planned, batch); });
  });
  if (by_deadline && absl::IsDeadlineExceeded(built.status()) && stages.cancel.Check().ok()) {
    DescribeKernels(reply);  // the build goes on
    return absl::OkStatus();
  }
  if (!built.ok()) return built.status();
  reply->stored = (*built)->stored;
  reply->warnings.insert(reply->warnings.end(), (*built)->warnings.begin(),
                         (*built)->warnings.end());
  reply->kernels.clear();
  for (size_t k = 0; k < (*built)->kernels.size(); ++k) {
    reply->kernels.push_back(ReadyStatus(*(*built)->kernels[k], (*built)->found[k]));
  }
  return absl::OkStatus();
}

// What stages make of a canonical graph. Pure but for the clock.
FusionPipeline::PlannedOr FusionPipeline::Plan(const Work& work, Alone alone,
                                               StageContext& stages) {
  PlannedModel model;
  NamedKernels kernels;
  for (;;) {
    ASSIGN_OR_RETURN(model, RunStage(stages, "plan", [&] {
                       return MakePlan(work.graph, work.device, work.options, &stages.cancel,
                                       alone);
                     }));
    ASSIGN_OR_RETURN(kernels, RunStage(stages, "emit", [&] {
                       return EmitKernels(work.device, toolchain_, &model);
                     }));
    size_t before = alone.size();
    RETURN_IF_ERROR(IsolateFailures(model.plan, kernels.refusals, &alone));
    if (alone.size() == before) break;
  }
  auto planned = std::make_shared<Planned>();
  planned->stored = std::make_shared<const StoredPlan>(MakeStoredPlan(
      work.full_key, std::move(model.plan),
      std::chrono::duration_cast<std::chrono::milliseconds>(clock_.UnixTime()).count()));
  planned->jobs = std::move(kernels.jobs);
  planned->times = stages.times;
  return PlannedOr(std::move(planned));
}

// Planning that other callers may come to wait for: no single one of them can end it.
FusionPipeline::PlannedOr FusionPipeline::PlanForAll(const Work& work, const Alone& alone) {
  CancelToken patience(stopping_, clock_.Now() + options_.plan_limit);
  StageContext stages{patience, clock_};
  PlannedOr planned = Plan(work, alone, stages);
  if (!absl::IsDeadlineExceeded(planned.status())) return planned;
  return ResourceExhausted("planning ", work.graph.nodes().size(), " nodes takes more than ",
                           options_.plan_limit / std::chrono::seconds(1), " s");
}

// A plan made by this call, by an equal one that is under way, or lately.
FusionPipeline::PlannedOr FusionPipeline::PlanOnce(const WorkPtr& work, const Alone& alone,
                                                   StageContext& stages, PlanReply* reply) {
  Nanoseconds start = clock_.Now();
  std::shared_ptr<const Planned> planned = Remembered(work->key, alone);
  bool remembered = planned != nullptr;
  bool shared = false;
  if (!remembered) {
    ASSIGN_OR_RETURN(planned, plans_.Run(
                                  work->key, stages.cancel,
                                  [this, work, alone]() -> PlannedOr {
                                    if (auto known = Remembered(work->key, alone)) return known;
                                    PlannedOr made = PlanForAll(*work, alone);
                                    if (made.ok()) Remember(work->key, *made);
                                    return made;
                                  },
                                  &shared));
  }
  if (!remembered && !shared) {
    stages.times.insert(stages.times.end(), planned->times.begin(), planned->times.end());
    return planned;
  }
  stages.times.push_back(
      {remembered ? "plan (remembered)" : "plan (shared)", clock_.Now() - start});
  if (reply->cache == CacheOutcome::kMiss) {
    reply->cache = remembered ? CacheOutcome::kHitMemory : CacheOutcome::kSharedFlight;
  }
  return planned;
}

void FusionPipeline::Remember(const Digest& key, std::shared_ptr<const Planned> planned) {
  int64_t bytes = ChargedBytes(*planned->stored);
  for (const CompileJob& job : planned->jobs) {
    bytes += static_cast<int64_t>(job.source.size() + job.schedule.size() + job.reference.size() +
                                  job.full_key.size());
  }
  std::vector<std::pair<Digest, std::shared_ptr<const Planned>>> forgotten;  // dies unlocked
  MutexLock lock(&mutex_);
  forgotten = planned_.Insert(key, std::move(planned), bytes);
}

// A plan made lately under the same restrictions.
std::shared_ptr<const FusionPipeline::Planned> FusionPipeline::Remembered(const Digest& key,
                                                                          const Alone& alone) {
  MutexLock lock(&mutex_);
  std::shared_ptr<const Planned>* known = planned_.Find(key);
  if (known == nullptr || AloneOf((*known)->stored->plan) != alone) return nullptr;
  return *known;
}

// Looks up the kernels of a plan and starts those that the store lacks.
std::shared_ptr<FusionPipeline::Batch> FusionPipeline::StartKernels(const Planned& planned) {
  size_t count = planned.jobs.size();
  auto batch = std::make_shared<Batch>();
  batch->kernels.resize(count);
  batch->found.resize(count);
  batch->results.resize(count);
  for (size_t k = 0; k < count; ++k) {
    const CompileJob& job = planned.jobs[k];
    batch->kernels[k] = store_.GetKernel({job.key, job.full_key}).value;
    batch->found[k] = batch->kernels[k] != nullptr;
    if (batch->found[k]) continue;
    absl::StatusOr<KernelBuilds::Claim> claim = kernel_builds_.Start(job);
    batch->results[k] = claim.status();
    if (claim.ok()) batch->claims.emplace_back(k, *std::move(claim));
  }
  return batch;
}

FusionPipeline::BuiltOr FusionPipeline::Build(const Work& work,
                                              std::shared_ptr<const Planned> planned,
                                              std::shared_ptr<Batch> batch) {
  const CancelToken everybody;  // the pool ends every job, and when it stops at once
  Alone alone = AloneOf(planned->stored->plan);
  bool lasting = true;
  for (;;) {
    for (const auto& [k, claim] : batch->claims) {
      CompileResult result = claim.ticket().Wait(everybody);
      batch->results[k] = result.status();
      if (result.ok()) batch->kernels[k] = *std::move(result);
    }
    size_t before = alone.size();
    RETURN_IF_ERROR(IsolateFailures(planned->stored->plan, batch->results, &alone));
    if (alone.size() == before) break;
    // A kernel that ran into a limit may do better on a quieter day.
    lasting &= std::none_of(batch->results.begin(), batch->results.end(),
                            [](const absl::Status& s) { return absl::IsDeadlineExceeded(s); });
    ASSIGN_OR_RETURN(planned, PlanForAll(work, alone));
    batch = StartKernels(*planned);
  }
  auto built = std::make_shared<Built>();
  built->stored = planned->stored;
  built->kernels = batch->kernels;
  built->found = batch->found;
  // Before the claims of `batch` end.
  Publish(lasting ? built->stored : nullptr, *batch, &built->warnings);
  return BuiltOr(std::move(built));
}

FusionPipeline::Alone FusionPipeline::AloneOf(const fusion::Plan& plan) {
  Alone alone;
  for (const PlanFallback& f : plan.fallbacks) alone[f.node] = f.reason;
  return alone;
}

// Adds the nodes of groups whose kernel is at fault to `alone`. Fails if a kernel could not be
// tried, or is the kernel of nothing that could be taken apart.
absl::Status FusionPipeline::IsolateFailures(const fusion::Plan& plan,
                                             const std::vector<absl::Status>& results,
                                             Alone* alone) const {
  for (size_t k = 0; k < results.size(); ++k) {
    if (results[k].ok()) continue;
    const PlanKernel& kernel = plan.kernels[k];
    if (!IsKernelsFault(results[k])) return NameKernel(results[k], kernel);
    size_t before = alone->size();
    NodeId first = kNoNode;
    for (const PlanGroup& group : plan.groups) {
      if (group.kernel != static_cast<int>(k) || group.nodes.empty()) continue;
      if (first == kNoNode) first = group.nodes[0];
      if (group.nodes.size() == 1) continue;
      for (int node : group.nodes) {
        alone->emplace(node, StrCat("not fused: a kernel of ", group.label, " failed"));
      }
    }
    if (alone->size() == before) return BlameNode(results[k], kernel, first);
    logger_.Warning(
        "group_unfused",
        {{"kernel", kernel.key.ToHex()}, {"label", kernel.label}, {"reason", Message(results[k])}});
  }
  return absl::OkStatus();
}

void FusionPipeline::Publish(std::shared_ptr<const StoredPlan> plan, const Batch& batch,
                             std::vector<std::string>* warnings) {
  Bundle bundle{.plan = std::move(plan), .kernels = {}};
  for (size_t k = 0; k < batch.kernels.size(); ++k) {
    if (!batch.found[k]) bundle.kernels.push_back(batch.kernels[k]);
  }
  absl::Status status = store_.PutBundle(bundle);
  if (status.ok()) return;
  logger_.Warning("bundle_not_stored", {{"plan", bundle.plan ? bundle.plan->key.ToHex() : ""},
                                        {"kernels", bundle.kernels.size()},
                                        {"reason", Message(status)}});
  warnings->push_back(StrCat("not stored: ", Message(status)));
}

// Fills in what is known about the kernels of reply->stored; true if all are ready.
bool FusionPipeline::DescribeKernels(PlanReply* reply) {
  reply->kernels.clear();
  bool all = true;
  for (const PlanKernel& kernel : reply->stored->plan.kernels) {
    Found<KernelArtifact> found = store_.GetKernel({kernel.key});
    if (found) {
      reply->kernels.push_back(ReadyStatus(*found.value, /*cached=*/true));
      continue;
    }
    all = false;
    KernelStatus status{.key = kernel.key};
    if (kernel_builds_.Failure(kernel.key).has_value()) status.state = KernelState::kFailed;
    reply->kernels.push_back(status);
  }
  return all;
}

KernelReply FusionPipeline::GetKernel(const Digest& key, const CancelToken& cancel) {
  std::shared_ptr<const CompileTicket> ticket = kernel_builds_.Find(key);
  if (Found<KernelArtifact> found = store_.GetKernel({key})) {
    return {KernelState::kReady, found.value, absl::OkStatus()};
  }
  if (ticket != nullptr) {
    CompileResult result = ticket->Wait(cancel);
    if (result.ok()) return {KernelState::kReady, *std::move(result), absl::OkStatus()};
    bool gave_up = !cancel.Check().ok();
    return {gave_up ? KernelState::kPending : KernelState::kFailed, nullptr, result.status()};
  }
  if (std::optional<absl::Status> why = kernel_builds_.Failure(key)) {
    return {KernelState::kFailed, nullptr, *why};
  }
  return {KernelState::kFailed, nullptr,
          NotFound("no kernel ", key.ToHex(), ": neither stored nor being compiled; plan again")};
}

}  // namespace fusion
