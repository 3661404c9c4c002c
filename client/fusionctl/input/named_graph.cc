#include "client/fusionctl/input/named_graph.h"

#include <map>

#include "core/graph/build/builder.h"
#include "core/graph/build/text.h"

namespace fusion {
namespace {

absl::Status CheckCounts(const Graph& graph, size_t weights, const Binding& names) {
  bool fits = graph.inputs().size() == names.inputs.size() &&
              graph.model_outputs() == names.outputs.size() &&
              graph.nodes().size() == names.nodes.size() && weights == names.weights.size();
  return fits ? absl::OkStatus() : InvalidArgument("the names do not fit the graph");
}

}  // namespace

absl::StatusOr<Graph> NameGraph(const Graph& canonical, const Binding& names) {
  size_t weights = 0;
  for (const Tensor& t : canonical.tensors()) weights += t.kind == TensorKind::kWeight ? 1 : 0;
  RETURN_IF_ERROR(CheckCounts(canonical, weights, names));
  std::map<TensorId, std::string> given;  // of inputs and outputs
  for (size_t i = 0; i < names.outputs.size(); ++i)
    given[canonical.outputs()[i]] = names.outputs[i];
  for (size_t i = 0; i < names.inputs.size(); ++i) given[canonical.inputs()[i]] = names.inputs[i];

  GraphBuilder builder("", {.fold_limit_bytes = 0});
  for (const SymbolDecl& symbol : canonical.symbols()) builder.AddSymbol(symbol);
  std::vector<TensorId> moved(canonical.tensors().size(), kNoTensor);
  size_t weight = 0;
  for (size_t i = 0; i < moved.size(); ++i) {
    const Tensor& t = canonical.tensors()[i];
    auto id = static_cast<TensorId>(i);
    if (t.kind == TensorKind::kInput) moved[i] = builder.AddInput(given[id], t.type);
    if (t.kind == TensorKind::kWeight) {
      moved[i] = builder.AddWeight(names.weights[weight++], t.type);
    }
    if (t.kind == TensorKind::kConstant) moved[i] = builder.AddConstant("", *t.value);
  }
  for (size_t n = 0; n < canonical.nodes().size(); ++n) {
    const Node& node = canonical.nodes()[n];
    std::vector<TensorId> inputs;
    for (TensorId id : node.inputs) {
      inputs.push_back(id == kNoTensor ? kNoTensor : moved[static_cast<size_t>(id)]);
    }
    std::vector<std::string> outputs;
    for (TensorId id : node.outputs) outputs.push_back(given[id]);
    ASSIGN_OR_RETURN(
        std::vector<TensorId> made,
        builder.AddMultiNode(*node.def, std::move(inputs), node.attrs, names.nodes[n], outputs));
    for (size_t i = 0; i < made.size(); ++i) moved[static_cast<size_t>(node.outputs[i])] = made[i];
  }
  for (TensorId id : canonical.outputs()) builder.MarkOutput(moved[static_cast<size_t>(id)]);
  return builder.Build();
}

absl::StatusOr<Graph> NamedGraph(const FusionReply& reply) {
  for (const Dump& text : reply.dumps) {
    if (text.kind != DumpKind::kGraph) continue;
    ASSIGN_OR_RETURN(Graph canonical, ParseGraph(text.text));
    return NameGraph(canonical, reply.binding);
  }
  return Internal("the service sent no graph");
}

}  // namespace fusion
