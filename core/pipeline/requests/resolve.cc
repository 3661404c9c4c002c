#include "core/pipeline/requests/resolve.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "absl/strings/cord.h"
#include "core/base/contains.h"
#include "core/base/kernel_abi.h"
#include "core/benefit/terms.h"
#include "core/bundle/heap_bytes.h"
#include "core/bundle/plan_lock.h"
#include "core/bundle/text.h"
#include "core/custom/custom_ops.h"
#include "core/graph/build/builder.h"
#include "core/graph/heap_bytes.h"
#include "core/graph/program/program.h"
#include "core/graph/symbol_names.h"
#include "core/import/graph_source.h"
#include "core/pipeline/families/import_family.h"
#include "core/pipeline/kernels/kernels.h"
#include "core/pipeline/requests/plan_key.h"
#include "core/plan/planner.h"
#include "core/plan/rules/rule_match.h"
#include "core/wire/options/tile_search.h"

namespace fusion {
namespace {

int64_t ChargedBytes(const Resolved& resolved) {
  constexpr int64_t kPartsBytes = 1024;  // the device's levels and blocks
  const Work& work = *resolved.work;
  int64_t bytes = static_cast<int64_t>(sizeof(Resolved) + sizeof(Work)) + kPartsBytes +
                  HeapBytes(work.full_key) + HeapBytes(work.graph) + HeapBytes(work.options) +
                  HeapBytes(resolved.warnings);
  const Binding& binding = resolved.binding;
  for (const auto* names :
       {&binding.inputs, &binding.outputs, &binding.weights, &binding.nodes, &binding.symbols}) {
    bytes += HeapBytes(*names);
  }
  if (work.family == nullptr) return bytes;
  auto charge_member = [&bytes](const FamilyMember& member) {
    bytes += static_cast<int64_t>(sizeof(member)) + HeapBytes(member.graph);
  };
  for (const auto* members : {&work.family->members, &work.family->samples}) {
    for (const FamilyMember& member : *members) charge_member(member);
  }
  if (work.family->few.has_value()) charge_member(*work.family->few);
  return bytes;
}

// Checks that a lock fits this request.
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
  if (!lock.variants.empty() && options.dim_ranges.empty()) {
    return InvalidArgument("lock.variants: ", lock.variants.size(),
                           "; a plan that leaves no dims open has none");
  }
  return absl::OkStatus();
}

// Checks that outputs fit their shared buffers and can share them; here errors can name tensors.
absl::Status CheckSharing(const Graph& graph, const PlanOptions& options) {
  if (graph.shared_buffers().empty()) return absl::OkStatus();
  for (const SharedBuffer& shared : graph.shared_buffers()) {
    const Tensor& out = graph.tensor(graph.outputs()[static_cast<size_t>(shared.output)]);
    const Dim& extent = out.type.shape.dim(shared.dim);
    if (!extent.is_static() || extent.value() <= shared.capacity) continue;
    return InvalidArgument("shared_buffers: output ", QuoteShort(out.name), " has ", extent.value(),
                           " elements along dim ", shared.dim, ", its buffer ", shared.capacity);
  }
  return BuildProgram(graph, ProgramOptionsFor(options)).status();
}

// Refuses a graph with open dims: names the first node that reads one, and the alternatives.
absl::Status CheckDimsAreGiven(const Graph& graph) {
  for (NodeId n = 0; n < static_cast<NodeId>(graph.nodes().size()); ++n) {
    for (TensorId id : graph.node(n).inputs) {
      if (id == kNoTensor || graph.tensor(id).type.shape.is_static()) continue;
      const Tensor& tensor = graph.tensor(id);
      std::set<std::string> open;
      for (const Dim& dim : tensor.type.shape.dims()) {
        for (const Dim::Term& term : dim.terms()) {
          open.insert(QuoteShort(graph.symbols()[static_cast<size_t>(term.symbol)].name));
        }
      }
      return InvalidArgument(graph.Describe(n), ": input ", QuoteShort(tensor.name), " is ",
                             WithSymbolNames(tensor.type.ToString(), graph.symbols()),
                             ": nothing says how long dim ", StrJoin(open, ", "),
                             " is; give it a number with dim_bindings (batch_size, if it is the "
                             "batch), or leave it open in a range with dim_ranges");
    }
  }
  return absl::OkStatus();
}

// The server's registered kernels that apply to a request: none if sums must be in index order, or
// for op by op, locked or open-dim plans.
RegisteredKernels Applicable(const RegisteredKernels& all, const PlanOptions& options, bool family,
                             const DeviceSpec& device) {
  const bool fits = options.fusion == FusionMode::kFused &&
                    options.numerics != Numerics::kBitwise && options.lock == nullptr && !family &&
                    FindBackend(device.backend).ok();
  RegisteredKernels out;
  if (!fits) return out;
  for (const auto& kernel : all) {
    const std::vector<std::string>& isas = kernel->isas;
    // Lower levels with vectors of the same length serve as well.
    const bool serves = std::any_of(kIsas.begin(), kIsas.end(), [&](Isa isa) {
      return isa <= device.isa && VectorLevel(isa) == VectorLevel(device.isa) &&
             Contains(isas, std::string(IsaName(isa)));
    });
    const bool written =
        isas.empty() || Contains(isas, device.arch) || (device.kind == "CPU" && serves);
    if (written) out.push_back(kernel);
  }
  return out;
}

// While it lives, stages are bounded by a job.
class Bounded {
 public:
  Bounded(StageContext* stages, Job* job) : stages_(*stages) { stages_.job = job; }
  ~Bounded() { stages_.job = nullptr; }
  Bounded(const Bounded&) = delete;
  Bounded& operator=(const Bounded&) = delete;

 private:
  StageContext& stages_;
};

// All digits: different factors are different text.
std::string TextOf(const CostFactors& f) {
  std::string out;
  for (const auto& [name, factor] : NamedFactors(f)) {
    StrAppend(&out, StrCat(name, " ", factor, " "));
  }
  for (const auto& [of, factor] : f.classes) {
    StrAppend(&out, StrCat(of.bound, "/", of.form, " ", factor, " "));
  }
  return out;
}

Digest PlanningKey(const Work& work) {
  std::string more;
  for (const auto& [name, reason] : work.registered.unused) StrAppend(&more, StrCat(" ", name));
  if (!more.empty()) more = StrCat(" without", more);
  if (work.search != nullptr) StrAppend(&more, StrCat(" tuned ", DigestOf(*work.search).ToHex()));
  if (work.calibration.epoch > 0) {
    StrAppend(&more, StrCat(" calibrated ", work.calibration.epoch, " ",
                            TextOf(work.calibration.factors)));
  }
  return more.empty() ? work.key : Sha256(StrCat(work.key.ToHex(), more));
}

}  // namespace

WorkPtr WithUnused(const WorkPtr& work, std::map<std::string, std::string> unused) {
  if (unused.empty() && work->registered.unused.empty()) return work;
  auto other = std::make_shared<Work>(*work);
  other->registered.unused = std::move(unused);
  other->planning_key = PlanningKey(*other);
  return other;
}

WorkPtr WithModelName(const WorkPtr& work, std::string_view model_name) {
  if (work->model_name == model_name) return work;
  auto other = std::make_shared<Work>(*work);
  other->model_name = model_name;
  return other;
}

WorkPtr WithSearch(const WorkPtr& work, std::shared_ptr<const TileSearch> search) {
  if (search == nullptr && work->search == nullptr) return work;
  auto other = std::make_shared<Work>(*work);
  other->search = std::move(search);
  other->planning_key = PlanningKey(*other);
  return other;
}

WorkPtr WithCalibration(const WorkPtr& work, const PlanCalibration& calibration) {
  if (work->calibration == calibration) return work;
  auto other = std::make_shared<Work>(*work);
  other->calibration = calibration;
  other->planning_key = PlanningKey(*other);
  return other;
}

DeviceSpec PlanningDevice(const Work& work) {
  return work.calibration.epoch == 0 ? work.device
                                     : Calibrated(work.device, work.calibration.factors);
}

absl::StatusOr<std::shared_ptr<const Resolved>> Resolver::Resolve(const PlanRequest& request,
                                                                  StageContext& stages) {
  using Recalled = absl::StatusOr<std::shared_ptr<const Resolved>>;
  // A lock may be large, and a pinned plan is usually loaded once.
  const bool recallable = request.source.op_graph == nullptr && request.dumps.empty() &&
                          request.options.lock == nullptr;
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
  forgotten = recalled_.Insert(digest, resolved, ChargedBytes(*resolved));
  return resolved;
}

absl::StatusOr<std::shared_ptr<const Resolved>> Resolver::Import(const PlanRequest& given,
                                                                 StageContext& stages) const {
  auto resolved = std::make_shared<Resolved>();
  std::string warning;
  PlanRequest request = given;
  Job job("import", job_, memory_, given.owner.tenant, &stages.cancel);
  const Bounded bounded(&stages, &job);
  BindSingleValues(&request.options);
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
  if (options.lock != nullptr && options.opt_level > 0) {
    resolved->warnings.push_back(StrCat("opt_level: ", options.opt_level,
                                        "; nothing is tried, the lock says how kernels are cut"));
  } else if (options.opt_level > max_opt_level_) {
    resolved->warnings.push_back(StrCat("opt_level: ", options.opt_level,
                                        "; this service searches at level ", max_opt_level_,
                                        " at most (--max-opt-level)"));
  }
  std::set<std::string> unfolded;
  std::vector<SharedNames> sharing = options.shared_buffers;
  std::set<std::string> declared;  // that no node gives
  std::set<std::string>* warnings = &declared;
  std::set<std::string> ranged;
  for (const auto& entry : options.dim_ranges) ranged.insert(entry.first);
  const Importer import = [&](const DimValues& dims, const ImportNotes& notes) {
    return ImportGraph(request.source, {.dim_bindings = dims,
                                        .ranged_dims = ranged,
                                        .batch_size = options.hints.batch_size,
                                        .keep_outputs = options.keep_outputs,
                                        .shared_buffers = sharing,
                                        .bound_strides = options.bound_strides,
                                        .custom_ops = &*custom_ops,
                                        .allow_fused = request.allow_fused,
                                        .short_repeats = !options.dim_ranges.empty(),
                                        .warnings = warnings,
                                        .unfolded = &unfolded,
                                        .folded = notes.folded,
                                        .trace = notes.trace});
  };
  ASSIGN_OR_RETURN(Graph graph, RunStage(stages, "import", [&]() -> absl::StatusOr<Graph> {
                     ASSIGN_OR_RETURN(auto dims, LargestDims(options));
                     unfolded = OpenTables(options, import);
                     if (unfolded.empty()) return import(dims, {});
                     absl::StatusOr<Graph> open = import(dims, {});
                     if (open.ok()) return open;
                     unfolded.clear();  // one of them says what a shape is
                     return import(dims, {});
                   }));
  warnings = nullptr;  // other members of a family say the same of other numbers
  resolved->warnings.insert(resolved->warnings.end(), declared.begin(), declared.end());
  if (constexpr size_t kMostWarnings = 8; resolved->warnings.size() > kMostWarnings) {
    const size_t more = resolved->warnings.size() - kMostWarnings;
    resolved->warnings.resize(kMostWarnings);
    resolved->warnings.push_back(StrCat("and ", more, " more"));
  }
  RETURN_IF_ERROR(CheckDimsAreGiven(graph));
  RETURN_IF_ERROR(job.Do([&] { return CheckSharing(graph, options); }));
  // Buffers are made for the largest values, whatever values a run has.
  for (size_t i = 0; i < sharing.size(); ++i) {
    sharing[i].capacity = graph.shared_buffers()[i].capacity;
  }
  ASSIGN_OR_RETURN(CanonicalGraph canonical,
                   RunStage(stages, "canonicalise", [&] { return Canonicalise(graph); }));
  std::shared_ptr<const ShapeFamily> family;
  std::string family_key;
  if (!options.dim_ranges.empty()) {
    ASSIGN_OR_RETURN(family, RunStage(stages, "members", [&] {
                       return ImportFamily(options, import, &stages.cancel, &canonical,
                                           &family_key);
                     }));
    resolved->binding.symbols = family->names;
  }
  ASSIGN_OR_RETURN(resolved->work, RunStage(stages, "key", [&] {
                     return MakeWork(canonical, std::move(device), std::move(family),
                                     std::move(family_key), request);
                   }));
  resolved->binding.inputs = std::move(canonical.input_names);
  resolved->binding.outputs = std::move(canonical.output_names);
  resolved->binding.weights = std::move(canonical.weight_names);
  resolved->binding.nodes = std::move(canonical.node_names);
  return std::shared_ptr<const Resolved>(std::move(resolved));
}

absl::StatusOr<WorkPtr> Resolver::MakeWork(const CanonicalGraph& canonical, DeviceSpec device,
                                           std::shared_ptr<const ShapeFamily> family,
                                           std::string family_key,
                                           const PlanRequest& request) const {
  CodegenIdentity codegen = IdentifyCodegen(device, toolchain_, request.options);
  auto work = std::make_shared<Work>();
  PlanOptions options = request.options;
  options.custom_ops.clear();  // they have become nodes
  options.rules.insert(options.rules.begin(), rules_.begin(), rules_.end());
  // The baseline follows no rules, a lock says all; neither leaves a choice.
  if (options.fusion == FusionMode::kOpByOp || options.lock != nullptr) {
    options.rules.clear();
    options.frontier = false;
    options.hints.low_latency = false;
  }
  options.opt_level = options.lock != nullptr ? 0 : std::min(options.opt_level, max_opt_level_);
  if (options.lock != nullptr || request.dumps.contains(DumpKind::kLock)) {
    work->graph_sha256 = Sha256(canonical.key_text);
  }
  if (options.lock != nullptr)
    RETURN_IF_ERROR(CheckFits(*options.lock, *work->graph_sha256, options));
  work->registered.kernels = Applicable(registered_, options, family != nullptr, device);
  work->full_key = PlanKey({.graph = canonical.key_text,
                            .device = device.KeyText(),
                            .fusion = options.fusion,
                            .numerics = options.numerics,
                            .high_memory_pressure = IsHighPressure(options.hints.memory_pressure),
                            .high_compute_pressure = IsHighPressure(options.hints.compute_pressure),
                            .low_latency = options.hints.low_latency,
                            .frontier = options.frontier,
                            .debug = options.debug,
                            .guard = options.guard,
                            .opt_level = options.opt_level,
                            .rules = KeyText(options.rules),
                            .planner_version = kPlannerVersion,
                            .backend = device.backend,
                            .codegen_version = codegen.version,
                            .abi_version = FUSION_KERNEL_ABI_VERSION,
                            .toolchain = codegen.toolchain,
                            .lock = options.lock == nullptr ? "" : DigestOf(*options.lock).ToHex(),
                            .family = std::move(family_key),
                            .registered = KeyText(work->registered.kernels),
                            .tenant = options.tenant});
  work->key = Sha256(work->full_key);
  work->planning_key = work->key;
  work->model_name = request.model_name;
  work->graph = canonical.graph;
  work->family = std::move(family);
  work->device = std::move(device);
  work->options = std::move(options);
  return WorkPtr(std::move(work));
}

}  // namespace fusion
