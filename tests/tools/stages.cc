#include "tests/tools/stages.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "core/bundle/text.h"
#include "core/codegen/backend.h"
#include "core/graph/build/builder.h"
#include "core/graph/build/canonical.h"
#include "core/graph/build/text.h"
#include "core/pipeline/requests/stage.h"
#include "core/plan/planner.h"
#include "core/smg/slicers.h"
#include "core/smg/stream.h"

namespace fusion {
namespace {

// The graph again as the importers would have built it: with folding.
absl::StatusOr<Graph> Fold(const Graph& graph) {
  GraphBuilder builder(graph.name());
  for (const SymbolDecl& symbol : graph.symbols()) builder.AddSymbol(symbol);
  std::vector<TensorId> now(graph.tensors().size(), kNoTensor);
  auto at = [&now](TensorId id) -> TensorId& { return now[static_cast<size_t>(id)]; };
  for (TensorId id : graph.inputs()) {
    at(id) = builder.AddInput(graph.tensor(id).name, graph.tensor(id).type);
  }
  for (size_t i = 0; i < graph.tensors().size(); ++i) {
    const Tensor& t = graph.tensors()[i];
    if (t.kind == TensorKind::kWeight) now[i] = builder.AddWeight(t.name, t.type);
    if (t.kind == TensorKind::kConstant) {
      now[i] = builder.AddConstant(t.name, *t.value, t.client_has_bytes);
    }
  }
  for (const Node& node : graph.nodes()) {
    std::vector<TensorId> inputs;
    std::vector<std::string> names;
    for (TensorId id : node.inputs) inputs.push_back(id == kNoTensor ? kNoTensor : at(id));
    for (TensorId id : node.outputs) names.push_back(graph.tensor(id).name);
    ASSIGN_OR_RETURN(std::vector<TensorId> outputs,
                     builder.AddMultiNode(*node.def, inputs, node.attrs, node.name, names));
    for (size_t i = 0; i < outputs.size(); ++i) at(node.outputs[i]) = outputs[i];
  }
  for (TensorId id : graph.outputs()) builder.MarkOutput(at(id));
  return builder.Build();
}

// What both slicers say about each dim.
std::string SlicesText(const Smg& smg, const std::vector<ValueId>& outputs) {
  constexpr std::string_view kStreams[] = {"no: ", "stream", "simple aggregate",
                                           "update then aggregate"};
  std::string out = "slices {\n";
  for (size_t i = 0; i < smg.dims.size(); ++i) {
    SpatialVerdict spatial = SliceSpatially(smg, static_cast<DimId>(i));
    Streamed temporal = StreamAlong(smg, outputs, static_cast<DimId>(i));
    std::string blocks = SpatialText(smg, static_cast<DimId>(i), spatial);
    StrAppend(&out, StrCat("  ", smg.dims[i].name, ":", smg.dims[i].extent, "\n    spatial ",
                           blocks, "\n    temporal ", kStreams[temporal.kind],
                           temporal.refusal.ToString(), "\n"));
    for (const std::string& line : temporal.certificate) {
      StrAppend(&out, StrCat("      ", line, "\n"));
    }
  }
  return out + "}\n";
}

// The values between stages.
class Run {
 public:
  Run(Graph graph, const StageOptions& options) : graph_(std::move(graph)), options_(options) {
    auto names_of = [this](const std::vector<TensorId>& ids) {
      std::vector<std::string> names;
      for (TensorId id : ids) names.push_back(graph_.tensor(id).name);
      return names;
    };
    names_ = {.inputs = names_of(graph_.inputs()), .outputs = names_of(graph_.outputs())};
    for (const Node& node : graph_.nodes()) names_.nodes.push_back(node.name);
    for (const Tensor& t : graph_.tensors()) {
      if (t.kind == TensorKind::kWeight) names_.weights.push_back(t.name);
    }
  }

  absl::StatusOr<std::string> Parse() { return ToString(graph_); }

  absl::StatusOr<std::string> FoldConstants() {
    ASSIGN_OR_RETURN(graph_, RunStage(context_, "fold", [&] { return Fold(graph_); }));
    names_.nodes.clear();
    for (const Node& node : graph_.nodes()) names_.nodes.push_back(node.name);
    return ToString(graph_);
  }

  absl::StatusOr<std::string> Canonical() {
    ASSIGN_OR_RETURN(CanonicalGraph canonical,
                     RunStage(context_, "canonicalise", [&] { return Canonicalise(graph_); }));
    names_ = {canonical.input_names, canonical.output_names, canonical.weight_names,
              canonical.node_names};
    graph_ = std::move(canonical.graph);
    return ToString(graph_);
  }

  absl::StatusOr<std::string> Loops() {
    RETURN_IF_ERROR(NeedProgram());
    return ToString(*program_);
  }

  // Of each group once there is a plan; before that of all ops together.
  absl::StatusOr<std::string> Spaces() {
    if (model_) {
      std::vector<Dump> dumps;
      AppendDumps(*model_, {DumpKind::kSmg}, &dumps);
      return StrJoin(dumps, "", [](const Dump& d) { return StrCat("# ", d.name, "\n", d.text); });
    }
    RETURN_IF_ERROR(NeedSmg());
    return ToString(*smg_);
  }

  absl::StatusOr<std::string> Slices() {
    RETURN_IF_ERROR(NeedSmg());
    return SlicesText(*smg_, program_->outputs);
  }

  absl::StatusOr<std::string> Plans() {
    RETURN_IF_ERROR(NeedPlan());
    std::string decisions = DecisionsText(model_->plan);
    return StrCat(PlanText(model_->plan, names_), decisions.empty() ? "" : "\ndecisions\n",
                  decisions);
  }

  absl::StatusOr<std::string> Schedules() {
    RETURN_IF_ERROR(NeedPlan());
    return StrJoin(model_->kernels, "", [](const PlannedKernel& kernel) { return kernel.text; });
  }

  absl::StatusOr<std::string> Sources() {
    RETURN_IF_ERROR(NeedPlan());
    ASSIGN_OR_RETURN(const Backend* backend, FindBackend(options_.device.backend));
    std::string out;
    for (size_t k = 0; k < model_->kernels.size(); ++k) {
      ASSIGN_OR_RETURN(KernelSource source,
                       backend->Emit(model_->kernels[k].schedule, options_.device,
                                     model_->plan.kernels[k].symbol));
      out += source.text;
    }
    return out;
  }

 private:
  absl::Status NeedProgram() {
    if (program_) return absl::OkStatus();
    ASSIGN_OR_RETURN(program_, RunStage(context_, "program", [&] { return BuildProgram(graph_); }));
    return absl::OkStatus();
  }

  absl::Status NeedSmg() {
    if (smg_) return absl::OkStatus();
    RETURN_IF_ERROR(NeedProgram());
    std::vector<LoopId> loops(program_->ops.size());
    std::iota(loops.begin(), loops.end(), 0);
    ASSIGN_OR_RETURN(smg_, RunStage(context_, "smg", [&] { return BuildSmg(*program_, loops); }));
    return absl::OkStatus();
  }

  absl::Status NeedPlan() {
    if (model_) return absl::OkStatus();
    ASSIGN_OR_RETURN(model_, RunStage(context_, "plan", [&] {
                       return MakePlan(graph_, options_.device, options_.plan);
                     }));
    for (size_t k = 0; k < model_->plan.kernels.size(); ++k) {
      model_->plan.kernels[k].symbol = StrCat("k", k);
    }
    return absl::OkStatus();
  }

  Graph graph_;
  const StageOptions& options_;
  Binding names_;
  CancelToken never_;
  StageContext context_{never_, Clock::Real()};
  std::optional<Program> program_;
  std::optional<Smg> smg_;
  std::optional<PlannedModel> model_;
};

struct Stage {
  std::string_view name;
  std::string_view prints;
  absl::StatusOr<std::string> (Run::*run)();
};

constexpr Stage kStages[] = {
    {"parse", "the graph as it was read", &Run::Parse},
    {"fold", "the graph without what constants alone decide", &Run::FoldConstants},
    {"canonicalise", "the graph without names and accidents of order", &Run::Canonical},
    {"program", "its loop ops", &Run::Loops},
    {"smg", "the space-mapping graph of all of them as one kernel; after plan, of each group",
     &Run::Spaces},
    {"slices", "what the slicers say about each dim of all of them as one kernel", &Run::Slices},
    {"plan", "groups, launches, tensors and decisions", &Run::Plans},
    {"schedule", "the schedule of each kernel", &Run::Schedules},
    {"source", "the source of each kernel", &Run::Sources},
};

const Stage* FindStage(std::string_view name) {
  const Stage* found = std::find_if(std::begin(kStages), std::end(kStages),
                                    [name](const Stage& stage) { return stage.name == name; });
  return found == std::end(kStages) ? nullptr : found;
}

}  // namespace

std::string StageList() {
  return StrJoin(kStages, "", [](const Stage& stage) {
    return StrCat("  ", stage.name, std::string(14 - stage.name.size(), ' '), stage.prints, "\n");
  });
}

absl::StatusOr<std::vector<std::string>> ParseStages(std::string_view list) {
  std::vector<std::string> stages;
  for (std::string_view piece : StrSplit(list, ',')) {
    std::string_view name = StripSpace(piece);
    if (FindStage(name) == nullptr) {
      return InvalidArgument(
          "stage ", QuoteShort(name), " does not exist; expected some of ",
          StrJoin(kStages, ", ", [](const Stage& stage) { return std::string(stage.name); }));
    }
    stages.emplace_back(name);
  }
  return stages;
}

absl::Status RunStages(std::string_view graph, const std::vector<std::string>& stages,
                       const StageOptions& options, std::vector<StageText>* texts) {
  ASSIGN_OR_RETURN(Graph parsed, ParseGraph(graph));
  Run run(std::move(parsed), options);
  for (const std::string& name : stages) {
    const Stage* stage = FindStage(name);
    if (stage == nullptr) return InvalidArgument("stage ", QuoteShort(name), " does not exist");
    absl::StatusOr<std::string> text = (run.*stage->run)();
    if (!text.ok()) return Annotate(text.status(), StrCat("stage ", name));
    texts->push_back({name, *std::move(text)});
  }
  return absl::OkStatus();
}

}  // namespace fusion
