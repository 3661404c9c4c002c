#include "core/pipeline/resolve.h"

#include "absl/strings/cord.h"
#include "core/base/kernel_abi.h"
#include "core/bundle/plan_lock.h"
#include "core/bundle/text.h"
#include "core/custom/custom_ops.h"
#include "core/import/graph_source.h"
#include "core/pipeline/kernels.h"
#include "core/pipeline/plan_key.h"
#include "core/plan/planner.h"
#include "core/plan/rule_match.h"

namespace fusion {
namespace {

int64_t ChargedBytes(const PlanRequest& request, const Resolved& resolved) {
  // A graph without its constants is a few times as long as its bytes.
  auto bytes =
      static_cast<int64_t>(4 * request.source.onnx_model.size() + resolved.work->full_key.size());
  for (const Tensor& t : resolved.work->graph.tensors()) {
    if (t.value != nullptr) bytes += t.value->byte_size();
  }
  return bytes;
}

// Whether a lock is one for this request.
absl::Status CheckFits(const PlanLock& lock, const Digest& graph, const PlanOptions& options) {
  if (lock.graph != graph) {
    return InvalidArgument("lock.graph_sha256: ", lock.graph.ToHex(), ", this graph is ",
                           graph.ToHex(), ": the lock is of another graph, or of other dims");
  }
  if (lock.fusion != options.fusion) {
    return InvalidArgument("lock.fusion: ", FusionName(lock.fusion), ", options.fusion is ",
                           FusionName(options.fusion));
  }
  if (lock.numerics != options.numerics) {
    return InvalidArgument("lock.numerics: ", NumericsName(lock.numerics), ", options.numerics is ",
                           NumericsName(options.numerics));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Resolved>> Resolver::Resolve(const PlanRequest& request,
                                                                  StageContext& stages) {
  using Recalled = absl::StatusOr<std::shared_ptr<const Resolved>>;
  bool recallable = request.source.op_graph == nullptr && request.dumps.empty();
  if (!recallable) return Import(request, stages);
  Digest digest;
  ASSIGN_OR_RETURN(std::shared_ptr<const Resolved> known,
                   RunStage(stages, "recall", [&]() -> Recalled {
                     digest = Sha256(RequestKey(request));
                     MutexLock lock(&mutex_);
                     std::shared_ptr<const Resolved>* found = recalled_.Find(digest);
                     return found == nullptr ? nullptr : *found;
                   }));
  if (known != nullptr) return known;
  ASSIGN_OR_RETURN(std::shared_ptr<const Resolved> resolved, Import(request, stages));
  std::vector<std::pair<Digest, std::shared_ptr<const Resolved>>> forgotten;  // dies unlocked
  MutexLock lock(&mutex_);
  forgotten = recalled_.Insert(digest, resolved, ChargedBytes(request, *resolved));
  return resolved;
}

absl::StatusOr<std::shared_ptr<const Resolved>> Resolver::Import(const PlanRequest& request,
                                                                 StageContext& stages) const {
  auto resolved = std::make_shared<Resolved>();
  std::string warning;
  const PlanOptions& options = request.options;
  for (const Rule& rule : options.rules) {
    absl::Status known = CheckRuleOps(rule);
    if (known.ok()) continue;
    known.SetPayload(kBlamedRules, absl::Cord(rule.name));
    return known;
  }
  ASSIGN_OR_RETURN(DeviceSpec device, RunStage(stages, "target", [&] {
                     return ResolveTarget(specs_, request.target, &warning);
                   }));
  if (!warning.empty()) resolved->warnings.push_back(warning);
  absl::Status compiles = CanCompile(device, toolchain_);
  if (request.mode != PlanMode::kPlanOnly) RETURN_IF_ERROR(compiles);
  if (!compiles.ok()) resolved->warnings.emplace_back(Message(compiles));
  absl::StatusOr<CustomOps> custom_ops = CustomOps::Parse(options.custom_ops);
  if (!custom_ops.ok()) return Annotate(custom_ops.status(), "options.custom_ops");
  ASSIGN_OR_RETURN(Graph graph, RunStage(stages, "import", [&] {
                     return ImportGraph(request.source, {.dim_bindings = options.dim_bindings,
                                                         .batch_size = options.hints.batch_size,
                                                         .keep_outputs = options.keep_outputs,
                                                         .custom_ops = &*custom_ops,
                                                         .allow_fused = request.allow_fused});
                   }));
  ASSIGN_OR_RETURN(CanonicalGraph canonical,
                   RunStage(stages, "canonicalise", [&] { return Canonicalise(graph); }));
  ASSIGN_OR_RETURN(resolved->work, RunStage(stages, "key", [&] {
                     return MakeWork(canonical, std::move(device), request);
                   }));
  resolved->binding = {std::move(canonical.input_names), std::move(canonical.output_names),
                       std::move(canonical.weight_names), std::move(canonical.node_names)};
  return std::shared_ptr<const Resolved>(std::move(resolved));
}

absl::StatusOr<WorkPtr> Resolver::MakeWork(const CanonicalGraph& canonical, DeviceSpec device,
                                           const PlanRequest& request) const {
  CodegenIdentity codegen = IdentifyCodegen(device, toolchain_, request.options.numerics);
  auto work = std::make_shared<Work>();
  PlanOptions options = request.options;
  options.rules.insert(options.rules.begin(), rules_.begin(), rules_.end());
  // The baseline follows no rules, a lock says all; neither leaves a choice.
  if (options.fusion == FusionMode::kOpByOp || options.lock != nullptr) {
    options.rules.clear();
    options.frontier = false;
    options.hints.low_latency = false;
  }
  if (options.lock != nullptr || request.dumps.contains(DumpKind::kLock)) {
    work->graph_sha256 = Sha256(canonical.key_text);
  }
  if (options.lock != nullptr)
    RETURN_IF_ERROR(CheckFits(*options.lock, *work->graph_sha256, options));
  work->full_key =
      PlanKey({.graph = canonical.key_text,
               .device = device.KeyText(),
               .fusion = options.fusion,
               .numerics = options.numerics,
               .high_memory_pressure = IsHighPressure(options.hints.memory_pressure),
               .high_compute_pressure = IsHighPressure(options.hints.compute_pressure),
               .low_latency = options.hints.low_latency,
               .frontier = options.frontier,
               .rules = KeyText(options.rules),
               .planner_version = kPlannerVersion,
               .backend = device.backend,
               .codegen_version = codegen.version,
               .abi_version = FUSION_KERNEL_ABI_VERSION,
               .toolchain = codegen.toolchain,
               .lock = options.lock == nullptr ? "" : DigestOf(*options.lock).ToHex()});
  work->key = Sha256(work->full_key);
  work->graph = canonical.graph;
  work->device = std::move(device);
  work->options = std::move(options);
  return WorkPtr(std::move(work));
}

}  // namespace fusion
