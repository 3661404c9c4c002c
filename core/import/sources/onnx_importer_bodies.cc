#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <unordered_set>
#include <utility>
#include <variant>

#include "core/import/bodies/control_flow.h"
#include "core/import/bodies/flex_attention.h"
#include "core/import/bodies/sequences.h"
#include "core/import/model/flatten.h"
#include "core/import/model/onnx_attributes.h"
#include "core/import/sources/onnx_importer.h"

namespace fusion {
namespace {

constexpr size_t kMaxBodyPrefix = 512;
// Of names that passes of loops make.
constexpr int64_t kMaxNameBytes = int64_t{1} << 27;

}  // namespace

absl::StatusOr<OnnxImporter::Body*> OnnxImporter::BodyOf(const FlatNode& node,
                                                         const onnx::GraphProto& graph) {
  std::unique_ptr<Body>& body = bodies_[{&node, &graph}];
  if (body != nullptr) return body.get();
  auto made = std::make_unique<Body>();
  made->graph = &graph;
  ASSIGN_OR_RETURN(made->flat, FlattenBody(body_->flat, node, graph));
  for (const onnx::ValueInfoProto& output : graph.output()) {
    auto ref = made->flat.by_name.find(output.name());
    if (ref == made->flat.by_name.end()) {
      return InvalidArgument("its output ", QuoteShort(output.name()), " is given by nothing");
    }
    made->wanted.push_back(ref->second);
  }
  RETURN_IF_ERROR(made->SetOrder());
  made->constants.assign(made->flat.values.size(), kNoTensor);
  body = std::move(made);
  return body.get();
}

absl::StatusOr<std::vector<Item>> OnnxImporter::AddBodyOf(const FlatNode& node,
                                                          const std::vector<Item>& node_inputs,
                                                          const onnx::GraphProto& graph,
                                                          const std::vector<Item>& inputs,
                                                          const std::string& name) {
  if (body_depth_ == kMaxBodyDepth) {
    return ResourceExhausted("bodies are nested deeper than ", kMaxBodyDepth,
                             ", or a function calls itself from a body");
  }
  // A pass of a body without nodes is no free one either.
  RETURN_IF_ERROR(CountNode());
  ASSIGN_OR_RETURN(Body * inner, BodyOf(node, graph));
  inner->prefix = StrCat(body_->prefix, node.name, "/").substr(0, kMaxBodyPrefix) + name + "/";
  if (inner->constants_of != graph_number_) {
    inner->constants.assign(inner->flat.values.size(), kNoTensor);
    inner->constants_of = graph_number_;
  }
  inner->ids = inner->constants;
  inner->collections.clear();
  const size_t own = node_inputs.size() - node.captured.size();
  auto bind = [&](const std::string& what, const Item& item) {
    auto ref = inner->flat.by_name.find(what);
    bool takes = ref != inner->flat.by_name.end() &&
                 inner->flat.values[static_cast<size_t>(ref->second)].kind == FlatValue::kInput;
    if (!takes) return;
    if (item.collection) {
      CountElements(*item.collection);
      inner->collections[ref->second] = *item.collection;
    } else {
      inner->ids[static_cast<size_t>(ref->second)] = item.tensor;
    }
  };
  for (size_t i = 0; i < node.captured.size(); ++i) bind(node.captured[i], node_inputs[own + i]);
  for (int i = 0; i < graph.input_size() && i < static_cast<int>(inputs.size()); ++i) {
    bind(graph.input(i).name(), inputs[static_cast<size_t>(i)]);
  }
  Body* outer = std::exchange(body_, inner);
  ++body_depth_;
  absl::StatusOr<std::vector<Item>> outputs = AddBodyNodes();
  --body_depth_;
  body_ = outer;
  return outputs;
}

absl::StatusOr<std::vector<Item>> OnnxImporter::AddBodyNodes() {
  RETURN_IF_ERROR(AddNodes());
  return ItemsOf(body_->wanted);
}

absl::StatusOr<RepeatBody> OnnxImporter::MakeBodyOf(const FlatNode& node,
                                                    const std::vector<Item>& node_inputs,
                                                    const onnx::GraphProto& graph,
                                                    const std::vector<BodyInput>& inputs,
                                                    Condition condition) {
  GraphBuilder made = builder_->Within(graph.name());
  std::vector<TensorId> given;
  for (const BodyInput& input : inputs) {
    if (const auto* type = std::get_if<TensorType>(&input)) {
      given.push_back(made.AddInput("", *type));
    } else {
      given.push_back(made.AddConstant("", std::get<HostTensor>(input)));
    }
  }
  std::vector<TensorId> captured;
  std::map<TensorId, TensorId> moved;
  std::map<TensorId, TensorId> held;  // constants of the body that are those of the graph around
  auto move = [&](TensorId* id) {
    if (*id == kNoTensor) return absl::OkStatus();
    auto [at, fresh] = moved.try_emplace(*id, kNoTensor);
    const Tensor& outer = builder_->tensor(*id);
    if (fresh && outer.value != nullptr) {
      at->second = made.AddConstant(outer.name, *outer.value, outer.client_has_bytes);
      held[at->second] = *id;
    } else if (fresh) {
      if (outer.counted) {
        return Unimplemented("its body reads ", QuoteShort(outer.name),
                             ", of which a run decides how many elements there are");
      }
      at->second = made.AddInput("", outer.type);
      captured.push_back(*id);
    }
    *id = at->second;
    return absl::OkStatus();
  };
  std::vector<Item> inner = node_inputs;
  for (size_t i = node_inputs.size() - node.captured.size(); i < node_inputs.size(); ++i) {
    RETURN_IF_ERROR(move(&inner[i].tensor));
    if (!inner[i].collection) continue;
    for (TensorId& element : inner[i].collection->elements) RETURN_IF_ERROR(move(&element));
  }
  GraphBuilder* outer = std::exchange(builder_, &made);
  const int64_t number = std::exchange(graph_number_, ++graphs_);
  absl::StatusOr<std::vector<TensorId>> outputs =
      AddTensorBody(AddsBodiesOf(node, inner), graph, given, "body");
  absl::StatusOr<RepeatBody> body =
      outputs.ok() ? BodyWith(*std::move(outputs), condition, node.name, held, &made)
                   : absl::StatusOr<RepeatBody>(outputs.status());
  builder_ = outer;
  graph_number_ = number;
  builder_->Settle(made);
  RETURN_IF_ERROR(body.status());
  body->captured.insert(body->captured.begin(), captured.begin(), captured.end());
  return body;
}

absl::StatusOr<RepeatBody> OnnxImporter::BodyWith(std::vector<TensorId> outputs,
                                                  Condition condition, const std::string& name,
                                                  const std::map<TensorId, TensorId>& held,
                                                  GraphBuilder* builder) {
  std::optional<bool> goes_on;
  if (condition == Condition::kIgnored && !outputs.empty()) {
    outputs.erase(outputs.begin());
    goes_on = true;
  } else if (condition == Condition::kAsked && !outputs.empty()) {
    const TensorType& type = builder->tensor(outputs[0]).type;
    if (type.dtype != DType::kBool || !type.shape.is_static() ||
        NumElements(type.shape.ToDims()) != 1) {
      return InvalidArgument("output 0 of the body is ", type.ToString(), ", expected one bool");
    }
    if (const HostTensor* known = builder->ConstantValue(outputs[0])) {
      goes_on = known->GetInt(0) != 0;
      outputs.erase(outputs.begin());
    } else if (type.shape.rank() > 0) {
      ASSIGN_OR_RETURN(outputs[0], builder->AddNode("Reshape", {outputs[0]}, {{"shape", Dims{}}},
                                                    StrCat(name, "/goes_on")));
    }
  }
  for (TensorId id : outputs) builder->MarkOutput(id);
  if (outputs.empty()) return InvalidArgument("the body gives nothing that is carried or kept");
  ASSIGN_OR_RETURN(Graph graph, builder->Build());
  ASSIGN_OR_RETURN(RepeatBody body, StepsOf(graph, held));
  body.goes_on = goes_on;
  return body;
}

AddBody OnnxImporter::AddsBodiesOf(const FlatNode& node, const std::vector<Item>& inputs) {
  return [this, &node, &inputs](const onnx::GraphProto& graph, const std::vector<Item>& in,
                                const std::string& name) {
    return AddBodyOf(node, inputs, graph, in, name);
  };
}

absl::Status OnnxImporter::AddFlow(const FlatNode& node) {
  ASSIGN_OR_RETURN(const std::vector<Item> inputs, ItemsOf(node.inputs));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesOf(node));
  Bodies bodies;
  bodies.add = AddsBodiesOf(node, inputs);
  bodies.make = [&](const onnx::GraphProto& graph, const std::vector<BodyInput>& in,
                    Condition condition) { return MakeBodyOf(node, inputs, graph, in, condition); };
  bodies.count = [this] { return CountNode(); };
  bodies.follow_points = &follow_points_;
  bodies.most_written_out = options_.short_repeats ? 0 : kMostPassesWrittenOut;
  FlatNode named = node;
  named.name = body_->prefix + node.name;
  ASSIGN_OR_RETURN(std::vector<Item> outputs, AddControlFlow(named, inputs, bodies, builder_));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!IsUsed(node.outputs[i])) continue;
    if (i >= outputs.size()) return HasNoOutput(node, i);
    if (!outputs[i].collection) {
      ASSIGN_OR_RETURN(outputs[i].tensor, builder_->AddNode("Identity", {outputs[i].tensor}, {},
                                                            named.name, names[i]));
    }
    RETURN_IF_ERROR(Give(node.outputs[i], std::move(outputs[i])));
  }
  return absl::OkStatus();
}

absl::Status OnnxImporter::HasNoOutput(const FlatNode& node, size_t output) {
  return InvalidArgument(DescribeNode(node.name, node.op), ": has no output ", output);
}

absl::StatusOr<std::vector<TensorId>> OnnxImporter::AddFlex(const FlatNode& node,
                                                            const std::vector<TensorId>& inputs,
                                                            const std::string& output) {
  FlatNode named = node;
  named.name = body_->prefix + node.name;
  ASSIGN_OR_RETURN(const std::vector<Item> items, ItemsOf(node.inputs));
  ASSIGN_OR_RETURN(TensorId y,
                   AddFlexAttention(named, inputs, AddsBodiesOf(node, items), output, builder_));
  return std::vector<TensorId>{y};
}

absl::Status OnnxImporter::AddSequenceMap(const FlatNode& node, const std::vector<Item>& items) {
  const std::string what = DescribeNode(node.name, node.op);
  const onnx::AttributeProto* attribute = FindAttribute(node, "body");
  if (attribute == nullptr || !attribute->has_g()) {
    return InvalidArgument(what, ": attribute \"body\" is no graph");
  }
  const size_t own = items.size() - node.captured.size();
  if (own == 0 || !items[0].collection || items[0].collection->is_none) {
    return InvalidArgument(what, ": input 0 is no sequence");
  }
  const size_t length = items[0].collection->elements.size();
  std::vector<std::vector<TensorId>> made(node.outputs.size());
  for (size_t k = 0; k < length; ++k) {
    std::vector<TensorId> inputs;
    for (size_t i = 0; i < own; ++i) {
      const bool fits = !items[i].collection || items[i].collection->elements.size() == length;
      if (!fits) {
        return InvalidArgument(what, ": input ", i, " has ", items[i].collection->elements.size(),
                               " elements, input 0 has ", length);
      }
      inputs.push_back(items[i].collection ? items[i].collection->elements[k] : items[i].tensor);
    }
    absl::StatusOr<std::vector<TensorId>> given =
        AddTensorBody(AddsBodiesOf(node, items), attribute->g(), inputs, StrCat(k));
    if (!given.ok()) return Annotate(given.status(), what);
    const std::vector<TensorId>& outputs = *given;
    for (size_t i = outputs.size(); i < made.size(); ++i) {
      if (IsUsed(node.outputs[i])) return HasNoOutput(node, i);
    }
    for (size_t i = 0; i < std::min(outputs.size(), made.size()); ++i) {
      made[i].push_back(outputs[i]);
    }
  }
  for (size_t i = 0; i < made.size(); ++i) {
    RETURN_IF_ERROR(
        Give(node.outputs[i], {.tensor = kNoTensor, .collection = Collection{false, made[i]}}));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> OnnxImporter::NamesOf(const FlatNode& node) {
  std::vector<std::string> names;
  for (ValueRef ref : node.outputs) {
    names.push_back(ref == kNoValueRef ? "" : body_->prefix + value(ref).name);
    name_bytes_ += static_cast<int64_t>(names.back().size());
  }
  name_bytes_ += static_cast<int64_t>(body_->prefix.size() + node.name.size());
  if (body_ != &main_ && name_bytes_ > kMaxNameBytes) {
    return ResourceExhausted("names have more than ", kMaxNameBytes,
                             " bytes after loops are written out");
  }
  return names;
}

}  // namespace fusion
