#include "core/import/bodies/repeat_body.h"

namespace fusion {

absl::StatusOr<RepeatBody> StepsOf(const Graph& graph, const std::map<TensorId, TensorId>& held) {
  if (!graph.output_extents().empty()) {
    return Unimplemented("a run decides how many elements its body gives in a pass");
  }
  RepeatBody out;
  Repeat& repeat = out.repeat;
  std::vector<Decomposition::Value> value_of(graph.tensors().size(), -1);
  Decomposition::Value values = 0;
  for (TensorId id : graph.inputs()) {
    value_of[static_cast<size_t>(id)] = values++;
    repeat.inputs.push_back({Repeat::Port::kWhole, graph.tensor(id).type});
  }
  // As Canonicalise tells weights from constants.
  auto capture = [&](TensorId id) {
    auto outer = id == kNoTensor ? held.end() : held.find(id);
    if (outer == held.end() || value_of[static_cast<size_t>(id)] >= 0) return;
    const Tensor& t = graph.tensor(id);
    if (!t.client_has_bytes || t.value->elements() == 1) return;
    value_of[static_cast<size_t>(id)] = values++;
    repeat.inputs.push_back({Repeat::Port::kWhole, t.type});
    out.captured.push_back(outer->second);
  };
  for (const Node& node : graph.nodes()) {
    for (TensorId id : node.inputs) capture(id);
  }
  for (TensorId id : graph.outputs()) capture(id);
  auto use = [&](TensorId id) {
    Decomposition::Value& value = value_of[static_cast<size_t>(id)];
    if (value < 0) {
      FUSION_CHECK(graph.tensor(id).value != nullptr, "a body has inputs, constants and nodes");
      repeat.steps.push_back(
          {.inputs = {}, .attrs = {}, .constant = *graph.tensor(id).value, .outputs = 1});
      value = values++;
    }
    return value;
  };
  for (const Node& node : graph.nodes()) {
    Decomposition::Step step{.def = node.def,
                             .inputs = {},
                             .attrs = node.attrs,
                             .constant = std::nullopt,
                             .outputs = static_cast<int>(node.outputs.size())};
    for (TensorId id : node.inputs) step.inputs.push_back(id == kNoTensor ? -1 : use(id));
    repeat.steps.push_back(std::move(step));
    for (TensorId id : node.outputs) value_of[static_cast<size_t>(id)] = values++;
  }
  for (TensorId id : graph.outputs()) {
    repeat.outputs.push_back({use(id)});
    out.outputs.push_back(graph.tensor(id).type);
  }
  return out;
}

}  // namespace fusion
