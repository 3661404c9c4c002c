#include "core/graph/build/canonical.h"

#include "core/graph/build/builder.h"
#include "core/graph/build/text.h"

namespace fusion {
namespace {

// Post-order of the nodes that outputs need, without recursion (graphs are deep).
std::vector<NodeId> DepthFirst(const Graph& graph) {
  std::vector<NodeId> order;
  std::vector<uint8_t> state(graph.nodes().size(), 0);  // 0 new, 1 open, 2 done
  struct Frame {
    NodeId node;
    size_t next;
  };
  std::vector<Frame> stack;
  auto open = [&](TensorId id) {
    NodeId producer = id == kNoTensor ? kNoNode : graph.tensor(id).producer;
    if (producer == kNoNode || state[static_cast<size_t>(producer)] != 0) return;
    state[static_cast<size_t>(producer)] = 1;
    stack.push_back({producer, 0});
  };
  for (TensorId out : graph.outputs()) {
    open(out);
    while (!stack.empty()) {
      Frame& frame = stack.back();
      const Node& node = graph.node(frame.node);
      if (frame.next < node.inputs.size()) {
        open(node.inputs[frame.next++]);
        continue;
      }
      state[static_cast<size_t>(frame.node)] = 2;
      order.push_back(frame.node);
      stack.pop_back();
    }
  }
  return order;
}

}  // namespace

absl::StatusOr<CanonicalGraph> Canonicalise(const Graph& graph) {
  CanonicalGraph out;
  GraphBuilder builder("", {.fold_limit_bytes = 0});
  for (const SymbolDecl& symbol : graph.symbols()) {
    SymbolDecl bare = symbol;
    bare.name.clear();
    builder.AddSymbol(std::move(bare));
  }
  std::vector<TensorId> moved(graph.tensors().size(), kNoTensor);
  for (TensorId id : graph.inputs()) {
    const Tensor& t = graph.tensor(id);
    moved[static_cast<size_t>(id)] = builder.AddInput("", t.type);
    out.input_names.push_back(t.name);
  }
  auto use = [&](TensorId id) {
    if (id == kNoTensor) return kNoTensor;
    TensorId& to = moved[static_cast<size_t>(id)];
    if (to != kNoTensor) return to;
    const Tensor& t = graph.tensor(id);
    bool argument =
        t.kind == TensorKind::kConstant && t.client_has_bytes && t.value->elements() != 1;
    if (t.kind == TensorKind::kWeight || argument) {
      to = builder.AddWeight("", t.type);
      out.weight_names.push_back(t.name);
    } else {
      to = builder.AddConstant("", *t.value);
    }
    return to;
  };
  // Leaves first, in order of first use, so that ids do not depend on the caller's order.
  std::vector<NodeId> order = DepthFirst(graph);
  for (NodeId n : order) {
    for (TensorId id : graph.node(n).inputs) {
      if (id != kNoTensor && graph.tensor(id).producer == kNoNode) use(id);
    }
  }
  for (TensorId id : graph.outputs()) {
    if (graph.tensor(id).producer == kNoNode) use(id);
  }
  for (NodeId n : order) {
    const Node& node = graph.node(n);
    std::vector<TensorId> inputs;
    for (TensorId id : node.inputs) inputs.push_back(use(id));
    ASSIGN_OR_RETURN(auto outputs,
                     builder.AddMultiNode(*node.def, std::move(inputs), node.attrs, "",
                                          std::vector<std::string>(node.outputs.size())));
    for (size_t i = 0; i < outputs.size(); ++i) {
      moved[static_cast<size_t>(node.outputs[i])] = outputs[i];
    }
    out.node_names.push_back(node.name);
  }
  for (TensorId id : graph.outputs()) {
    builder.MarkOutput(use(id));
    if (out.output_names.size() < graph.model_outputs()) {
      out.output_names.push_back(graph.tensor(id).name);
    }
  }
  for (const SharedBuffer& shared : graph.shared_buffers()) {
    RETURN_IF_ERROR(builder.ShareBuffer(shared));
  }
  for (const BoundStrides& bound : graph.bound_strides()) {
    RETURN_IF_ERROR(builder.BindStrides(bound));
  }
  ASSIGN_OR_RETURN(out.graph, builder.Build());
  out.key_text = KeyText(out.graph);
  return out;
}

}  // namespace fusion
