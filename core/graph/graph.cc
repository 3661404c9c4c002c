#include "core/graph/graph.h"

#include <algorithm>
#include <cctype>

#include "core/op/derive.h"

namespace fusion {

std::string DescribeNode(std::string_view name, std::string_view op) {
  // An op type may be any text of the client's.
  constexpr size_t kLongest = 64;
  bool plain = op.size() <= kLongest && std::all_of(op.begin(), op.end(), [](unsigned char c) {
                 return std::isalnum(c) != 0 || c == '_';
               });
  return StrCat("node ", QuoteShort(name), " (", plain ? std::string(op) : QuoteShort(op), ")");
}

std::string Graph::Describe(NodeId id) const {
  return DescribeNode(node(id).name, node(id).def->name);
}

OpCall Graph::Call(NodeId id) const {
  const Node& n = node(id);
  std::vector<std::optional<TensorType>> types;
  for (TensorId t : n.inputs) {
    types.push_back(t == kNoTensor ? std::nullopt : std::optional(tensor(t).type));
  }
  return OpCall(*n.def, std::move(types), n.attrs, static_cast<int>(n.outputs.size()));
}

absl::Status Verify(const Graph& graph) {
  auto count = static_cast<TensorId>(graph.tensors().size());
  std::vector<bool> defined(graph.tensors().size(), false);
  auto in_range = [count](TensorId id) { return id >= 0 && id < count; };
  for (TensorId id = 0; id < count; ++id) {
    const Tensor& t = graph.tensor(id);
    defined[static_cast<size_t>(id)] = t.kind != TensorKind::kIntermediate;
    if ((t.kind == TensorKind::kConstant) != (t.value != nullptr)) {
      return Internal("tensor %", id, ": a constant and only a constant has a value");
    }
    if (t.value && (t.value->dtype() != t.type.dtype || Shape(t.value->dims()) != t.type.shape)) {
      return Internal("tensor %", id, ": the value is not a ", t.type.ToString());
    }
  }
  for (TensorId id : graph.inputs()) {
    if (!in_range(id) || graph.tensor(id).kind != TensorKind::kInput) {
      return Internal("graph input %", id, " is no input tensor");
    }
  }
  for (NodeId n = 0; n < static_cast<NodeId>(graph.nodes().size()); ++n) {
    const Node& node = graph.node(n);
    for (TensorId id : node.inputs) {
      if (id == kNoTensor) continue;
      if (!in_range(id) || !defined[static_cast<size_t>(id)]) {
        return Internal(graph.Describe(n), ": input %", id, " is not defined before its use");
      }
    }
    auto types = InferOutputTypes(graph.Call(n));
    if (!types.ok()) return Annotate(types.status(), graph.Describe(n));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      TensorId id = node.outputs[i];
      if (!in_range(id) || defined[static_cast<size_t>(id)]) {
        return Internal(graph.Describe(n), ": output %", id, " is assigned twice");
      }
      defined[static_cast<size_t>(id)] = true;
      if (graph.tensor(id).type != (*types)[i] || graph.tensor(id).producer != n) {
        return Internal(graph.Describe(n), ": output %", id, " is declared ",
                        graph.tensor(id).type.ToString(), ", inferred ", (*types)[i].ToString());
      }
    }
  }
  for (TensorId id : graph.outputs()) {
    if (!in_range(id) || !defined[static_cast<size_t>(id)]) {
      return Internal("graph output %", id, " is not defined");
    }
  }
  for (const OutputExtent& e : graph.output_extents()) {
    const Tensor& output = graph.tensor(graph.outputs()[static_cast<size_t>(e.output)]);
    const TensorId how_many = graph.outputs()[static_cast<size_t>(e.count)];
    if (output.counted != CountedDim{e.dim, how_many} ||
        graph.tensor(how_many).type != TensorType{DType::kI64, Shape()}) {
      return Internal("graph output %", how_many, " does not count output ", e.output);
    }
  }
  return absl::OkStatus();
}

}  // namespace fusion
