#include "core/pipeline/resolve.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "absl/strings/cord.h"
#include "core/base/contains.h"
#include "core/base/kernel_abi.h"
#include "core/bundle/heap_bytes.h"
#include "core/bundle/plan_lock.h"
#include "core/bundle/text.h"
#include "core/custom/custom_ops.h"
#include "core/graph/builder.h"
#include "core/graph/heap_bytes.h"
#include "core/graph/program.h"
#include "core/import/graph_source.h"
#include "core/pipeline/kernels.h"
#include "core/pipeline/plan_key.h"
#include "core/plan/planner.h"
#include "core/plan/rule_match.h"
#include "core/wire/tile_search.h"

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

using DimValues = std::map<std::string, int64_t>;
using Importer = std::function<absl::StatusOr<Graph>(const DimValues&)>;

// The dims of a request where its symbols have their largest values.
absl::StatusOr<DimValues> LargestDims(const PlanOptions& options) {
  DimValues dims = options.dim_bindings;
  for (const auto& [name, range] : options.dim_ranges) {
    if (range.most < 2 || range.most == range.least) {
      return InvalidArgument("options.dim_ranges[", Quote(name), "]: ", range.least, "..",
                             range.most, "; expected several values, the largest above 1");
    }
    if (!dims.emplace(name, range.most).second) {
      return InvalidArgument("options.dim_ranges[", Quote(name),
                             "]: options.dim_bindings has a value for it");
    }
  }
  return dims;
}

using FoldingImporter =
    std::function<absl::StatusOr<Graph>(const DimValues&, std::map<std::string, Dims>* folded)>;

DimValues DimsAt(const PlanOptions& options, const std::vector<int64_t>& units) {
  DimValues dims = options.dim_bindings;
  size_t s = 0;
  for (const auto& [name, range] : options.dim_ranges) dims[name] = units[s++] * range.multiple;
  return dims;
}

std::vector<DimRange> SymbolsOf(const PlanOptions& options) {
  std::vector<DimRange> out;
  for (const auto& [name, range] : options.dim_ranges) out.push_back(range);
  return out;
}

// What depends on shapes alone and has one that depends on open dims: positions, masks. It is no
// constant of the family.
std::set<std::string> OpenTables(const PlanOptions& options, const FoldingImporter& import) {
  std::set<std::string> open;
  if (options.dim_ranges.empty()) return open;
  std::map<std::string, Dims> one;
  std::map<std::string, Dims> other;
  bool known = false;
  for (bool inside : {false, true}) {
    const std::vector<std::vector<int64_t>> points = MemberPoints(SymbolsOf(options), inside);
    known = known || (import(DimsAt(options, points[0]), &one).ok() &&
                      import(DimsAt(options, points[1]), &other).ok());
  }
  if (!known) return open;
  for (const auto& [name, dims] : one) {
    auto found = other.find(name);
    if (found != other.end() && found->second != dims) open.insert(name);
  }
  return open;
}

// Graph::shape_classes of all members, by what the tensors of each look like; empty: some member
// has other tensors.
std::vector<int> ShapeClasses(const Graph& largest, const std::vector<FamilyMember>& members) {
  std::map<std::vector<std::string>, int> classes;
  std::vector<int> out;
  for (size_t t = 0; t < largest.tensors().size(); ++t) {
    std::vector<std::string> shapes = {largest.tensors()[t].type.shape.ToString()};
    bool same = true;
    for (const FamilyMember& member : members) {
      if (member.graph.tensors().size() != largest.tensors().size()) return {};
      shapes.push_back(member.graph.tensors()[t].type.shape.ToString());
      same = same && shapes.back() == shapes.front();
    }
    const int next = static_cast<int>(classes.size()) + 1;
    out.push_back(same ? 0 : classes.try_emplace(std::move(shapes), next).first->second);
  }
  return out;
}

// The family with classes, and its largest member.
void Classify(ShapeFamily* family, Graph* largest) {
  const std::vector<int> classes = ShapeClasses(*largest, family->members);
  if (classes.empty()) return;
  auto classify = [&](Graph* graph) {
    if (graph->tensors().size() != classes.size()) return;
    *graph = GraphBuilder::WithShapeClasses(std::move(*graph), classes);
  };
  classify(largest);
  for (FamilyMember& member : family->members) classify(&member.graph);
  for (FamilyMember& sample : family->samples) classify(&sample.graph);
  if (family->few.has_value()) classify(&family->few->graph);
}

// `key`: what tells families of equal `largest` apart.
absl::StatusOr<std::shared_ptr<const ShapeFamily>> ImportFamily(const PlanOptions& options,
                                                                CanonicalGraph* canonical_largest,
                                                                const Importer& import,
                                                                std::string* key) {
  auto family = std::make_shared<ShapeFamily>();
  const CanonicalGraph& largest = *canonical_largest;
  FieldHasher h;
  family->symbols = SymbolsOf(options);
  for (const auto& [name, range] : options.dim_ranges) {
    family->names.push_back(name);
    h.Add("least", range.least).Add("most", range.most);
    h.Add("multiple", range.multiple).Add("likely", range.likely);
  }
  auto add = [&](const std::vector<std::vector<int64_t>>& points,
                 std::vector<FamilyMember>* out) -> absl::Status {
    for (const std::vector<int64_t>& units : points) {
      std::vector<std::string> shown;
      for (size_t s = 0; s < units.size(); ++s) {
        shown.push_back(StrCat(family->names[s], "=", units[s] * family->symbols[s].multiple));
      }
      absl::StatusOr<Graph> graph = import(DimsAt(options, units));
      if (!graph.ok()) return Annotate(graph.status(), StrJoin(shown, ", "));
      ASSIGN_OR_RETURN(CanonicalGraph canonical, Canonicalise(*graph));
      if (canonical.node_names != largest.node_names) {
        return FailedPrecondition("options.dim_ranges: with ", StrJoin(shown, ", "),
                                  " the graph has ", canonical.node_names.size(),
                                  " nodes, and other ones than with the largest values, of which "
                                  "it has ",
                                  largest.node_names.size());
      }
      h.Add("member", Sha256(canonical.key_text).ToHex());
      out->push_back({units, std::move(canonical.graph)});
    }
    return absl::OkStatus();
  };
  absl::Status members = add(MemberPoints(family->symbols, /*inside=*/false), &family->members);
  if (!members.ok()) {
    family->members.clear();
    RETURN_IF_ERROR(add(MemberPoints(family->symbols, /*inside=*/true), &family->members));
  }
  // A sample may be another graph, and is then none.
  for (const std::vector<int64_t>& units : SamplePoints(family->symbols)) {
    (void)add({units}, &family->samples);
  }
  family->few_symbols = FewRanges(family->symbols);
  if (!family->few_symbols.empty()) {
    std::vector<FamilyMember> few;
    if (add({MostUnits(family->few_symbols)}, &few).ok()) family->few = std::move(few[0]);
  }
  *key = h.bytes();
  Classify(family.get(), &canonical_largest->graph);
  return std::shared_ptr<const ShapeFamily>(std::move(family));
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
  if (!lock.variants.empty() && options.dim_ranges.empty()) {
    return InvalidArgument("lock.variants: ", lock.variants.size(),
                           "; a plan that leaves no dims open has none");
  }
  return absl::OkStatus();
}

// Whether outputs fit the buffers that they share, and can: here they have names.
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

// Of the kernels of the server those that may run in plans of a request: sums in index order, one
// kernel a node, cuts of a lock and dims left open leave no place for them.
RegisteredKernels Applicable(const RegisteredKernels& all, const PlanOptions& options, bool family,
                             const DeviceSpec& device) {
  const bool fits = options.fusion == FusionMode::kFused &&
                    options.numerics != Numerics::kBitwise && options.lock == nullptr && !family &&
                    FindBackend(device.backend).ok();
  RegisteredKernels out;
  if (!fits) return out;
  for (const auto& kernel : all) {
    const std::vector<std::string>& isas = kernel->isas;
    // Of levels with the same vectors the lower ones are as good.
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

Digest PlanningKey(const Work& work) {
  std::string more;
  for (const auto& [name, reason] : work.registered.unused) StrAppend(&more, StrCat(" ", name));
  if (!more.empty()) more = StrCat(" without", more);
  if (work.search != nullptr) StrAppend(&more, StrCat(" tuned ", DigestOf(*work.search).ToHex()));
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

WorkPtr WithSearch(const WorkPtr& work, std::shared_ptr<const TileSearch> search) {
  if (search == nullptr && work->search == nullptr) return work;
  auto other = std::make_shared<Work>(*work);
  other->search = std::move(search);
  other->planning_key = PlanningKey(*other);
  return other;
}

absl::StatusOr<std::shared_ptr<const Resolved>> Resolver::Resolve(const PlanRequest& request,
                                                                  StageContext& stages) {
  using Recalled = absl::StatusOr<std::shared_ptr<const Resolved>>;
  // A lock may be large, and who pins a plan loads it once.
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
  auto import_as = [&](const DimValues& dims, std::map<std::string, Dims>* folded) {
    return ImportGraph(request.source, {.dim_bindings = dims,
                                        .batch_size = options.hints.batch_size,
                                        .keep_outputs = options.keep_outputs,
                                        .shared_buffers = sharing,
                                        .bound_strides = options.bound_strides,
                                        .custom_ops = &*custom_ops,
                                        .allow_fused = request.allow_fused,
                                        .short_repeats = !options.dim_ranges.empty(),
                                        .warnings = warnings,
                                        .unfolded = &unfolded,
                                        .folded = folded});
  };
  auto import = [&](const DimValues& dims) { return import_as(dims, nullptr); };
  ASSIGN_OR_RETURN(Graph graph, RunStage(stages, "import", [&]() -> absl::StatusOr<Graph> {
                     ASSIGN_OR_RETURN(auto dims, LargestDims(options));
                     unfolded = OpenTables(options, import_as);
                     if (unfolded.empty()) return import(dims);
                     absl::StatusOr<Graph> open = import(dims);
                     if (open.ok()) return open;
                     unfolded.clear();  // one of them says what a shape is
                     return import(dims);
                   }));
  warnings = nullptr;  // other members of a family say the same of other numbers
  resolved->warnings.insert(resolved->warnings.end(), declared.begin(), declared.end());
  if (constexpr size_t kMostWarnings = 8; resolved->warnings.size() > kMostWarnings) {
    const size_t more = resolved->warnings.size() - kMostWarnings;
    resolved->warnings.resize(kMostWarnings);
    resolved->warnings.push_back(StrCat("and ", more, " more"));
  }
  RETURN_IF_ERROR(CheckSharing(graph, options));
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
                       return ImportFamily(options, &canonical, import, &family_key);
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
  work->graph = canonical.graph;
  work->family = std::move(family);
  work->device = std::move(device);
  work->options = std::move(options);
  return WorkPtr(std::move(work));
}

}  // namespace fusion
