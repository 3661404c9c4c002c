#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <unordered_set>
#include <utility>
#include <variant>

#include "core/base/threads/job.h"
#include "core/import/bodies/control_flow.h"
#include "core/import/bodies/flex_attention.h"
#include "core/import/bodies/sequences.h"
#include "core/import/import.h"
#include "core/import/model/declared_types.h"
#include "core/import/model/dropout.h"
#include "core/import/model/flatten.h"
#include "core/import/model/normalise.h"
#include "core/import/model/old_broadcast.h"
#include "core/import/model/onnx_attributes.h"
#include "core/import/model/shared_names.h"
#include "core/import/sources/onnx_importer.h"
#include "core/onnx/constant_node.h"
#include "core/onnx/group_calls.h"
#include "core/op/indexed/random_numbers.h"

namespace fusion {

absl::StatusOr<Graph> OnnxImporter::Run() {
  absl::StatusOr<Graph> graph = Import();
  if (!graph.ok()) return symbols_.InModelWords(graph.status());
  return graph;
}

absl::StatusOr<Graph> OnnxImporter::Import() {
  ASSIGN_OR_RETURN(main_.flat, FlattenModel(model_));
  main_.graph = &graph_;
  main_.ids.assign(main_.flat.values.size(), kNoTensor);
  RETURN_IF_ERROR(ReadTypes());
  RETURN_IF_ERROR(AddInputs());
  RETURN_IF_ERROR(FindWanted());
  RETURN_IF_ERROR(main_.SetOrder());
  RETURN_IF_ERROR(AddNodes());
  for (ValueRef value : main_.wanted) {
    ASSIGN_OR_RETURN(TensorId id, TensorOf(value));
    RETURN_IF_ERROR(CheckType(value, id));
    builder_->MarkOutput(id);
  }
  RETURN_IF_ERROR(ShareByName(options_.shared_buffers, builder_));
  RETURN_IF_ERROR(BindByName(options_.bound_strides, builder_));
  return builder_->Build();
}

const FlatValue& OnnxImporter::value(ValueRef ref) const {
  return body_->flat.values[static_cast<size_t>(ref)];
}

absl::Status OnnxImporter::AddNodes() {
  for (int index : body_->order) {
    RETURN_IF_ERROR(CountNode());
    RETURN_IF_ERROR(AddNode(body_->flat.nodes[static_cast<size_t>(index)]));
  }
  return absl::OkStatus();
}

absl::Status OnnxImporter::CountNode() {
  if (++added_ <= kMaxImportedNodes) return absl::OkStatus();
  return ResourceExhausted("the model has more than ", kMaxImportedNodes,
                           " nodes after its loops are written out");
}

void OnnxImporter::CountElements(const Collection& collection) {
  constexpr size_t kElementsOfAStep = 16;
  Job::Step(1 + static_cast<int64_t>(collection.elements.size() / kElementsOfAStep));
}

absl::Status OnnxImporter::ReadTypes() {
  for (const onnx::ValueInfoProto& input : graph_.input()) {
    auto ref = main_.flat.by_name.find(input.name());
    bool constant = value(ref->second).kind == FlatValue::kInitializer;
    if (constant) {
      RETURN_IF_ERROR(Declare(input, "input "));
      continue;
    }
    ASSIGN_OR_RETURN(InputType type, ReadInputType(input, &symbols_));
    input_refs_.push_back(ref->second);
    input_dtypes_.push_back(type.dtype);
    input_shapes_.push_back(std::move(type.shape));
  }
  for (const onnx::ValueInfoProto& info : graph_.value_info()) {
    absl::Status status = Declare(info, "tensor ");
    // An unsupported type is an error of the node that makes the tensor, if the tensor is needed.
    if (!status.ok() && !absl::IsUnimplemented(status)) return status;
  }
  for (const onnx::ValueInfoProto& output : graph_.output()) {
    RETURN_IF_ERROR(Declare(output, "output "));
  }
  return absl::OkStatus();
}

absl::Status OnnxImporter::Declare(const onnx::ValueInfoProto& info, std::string_view kind) {
  auto ref = main_.flat.by_name.find(info.name());
  if (ref == main_.flat.by_name.end() || !info.has_type()) return absl::OkStatus();
  std::string what = StrCat(kind, QuoteShort(info.name()));
  ASSIGN_OR_RETURN(DeclaredType type, ReadDeclaredType(info.type(), what, &symbols_));
  declared_[ref->second].push_back({std::move(type), std::move(what)});
  return absl::OkStatus();
}

absl::Status OnnxImporter::AddInputs() {
  RETURN_IF_ERROR(symbols_.CheckBindings());
  RETURN_IF_ERROR(symbols_.BindBatch(options_.batch_size, input_shapes_));
  for (size_t i = 0; i < input_refs_.size(); ++i) {
    const std::string& name = value(input_refs_[i]).name;
    std::string what = StrCat("input ", QuoteShort(name));
    auto shape = symbols_.Resolve(input_shapes_[i], builder_);
    if (!shape.ok()) return Annotate(shape.status(), what);
    TensorType type{input_dtypes_[i], *std::move(shape)};
    absl::Status size = CheckTensorSize(type);
    if (!size.ok()) return Annotate(size, what);
    TensorId id = builder_->AddInput(name, std::move(type));
    main_.ids[static_cast<size_t>(input_refs_[i])] = id;
    RETURN_IF_ERROR(CheckType(input_refs_[i], id));
  }
  return absl::OkStatus();
}

absl::Status OnnxImporter::FindWanted() {
  std::unordered_set<ValueRef> seen;
  for (const onnx::ValueInfoProto& output : graph_.output()) {
    auto ref = main_.flat.by_name.find(output.name());
    if (ref == main_.flat.by_name.end() || value(ref->second).kind == FlatValue::kUndefined) {
      return InvalidArgument("output ", QuoteShort(output.name()),
                             " is given by no node, input or initializer");
    }
    if (!seen.insert(ref->second).second) {
      return InvalidArgument("output ", QuoteShort(output.name()), " is declared twice");
    }
    main_.wanted.push_back(ref->second);
  }
  if (main_.wanted.empty()) return InvalidArgument("the graph has no output");
  for (const std::string& name : options_.keep_outputs) {
    auto ref = main_.flat.by_name.find(name);
    if (ref == main_.flat.by_name.end() || value(ref->second).kind != FlatValue::kNode) {
      return InvalidArgument("keep_outputs names ", QuoteShort(name),
                             ", which no node of the graph gives");
    }
    if (seen.insert(ref->second).second) main_.wanted.push_back(ref->second);
  }
  return absl::OkStatus();
}

bool OnnxImporter::IsUsed(ValueRef ref) const {
  return ref != kNoValueRef && body_->used[static_cast<size_t>(ref)];
}

absl::Status OnnxImporter::CheckType(ValueRef ref, TensorId id) const {
  if (body_ != &main_) return absl::OkStatus();
  auto declared = declared_.find(ref);
  if (declared == declared_.end()) return absl::OkStatus();
  const Tensor& tensor = builder_->tensor(id);
  const int counted = tensor.counted ? tensor.counted->dim : -1;
  for (const Declaration& d : declared->second) {
    absl::Status fits = CheckDeclaredType(d.type, tensor.type, counted, symbols_, d.what);
    if (fits.ok()) continue;
    const bool other_dtype = d.type.dtype && *d.type.dtype != tensor.type.dtype;
    if (value(ref).kind != FlatValue::kNode || other_dtype) return fits;
    if (options_.warnings != nullptr) options_.warnings->emplace(Message(fits));
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorId> OnnxImporter::TensorOf(ValueRef ref) {
  if (ref == kNoValueRef) return kNoTensor;
  TensorId& id = body_->ids[static_cast<size_t>(ref)];
  if (id == kNoTensor && value(ref).kind == FlatValue::kInitializer) {
    const onnx::TensorProto& tensor = body_->graph->initializer(value(ref).index);
    std::string what = StrCat("initializer ", QuoteShort(tensor.name()));
    ASSIGN_OR_RETURN(id, AddConstant(tensor, tensor.name(), body_ == &main_, what));
    RETURN_IF_ERROR(CheckType(ref, id));
    if (body_ != &main_) body_->constants[static_cast<size_t>(ref)] = id;
  }
  if (auto held = body_->collections.find(ref); held != body_->collections.end()) {
    return Unimplemented("output ", QuoteShort(value(ref).name), " is ", KindOf(held->second),
                         "; only tensors can be outputs");
  }
  if (id == kNoTensor) return Internal("tensor ", QuoteShort(value(ref).name), " is not built");
  return id;
}

absl::StatusOr<TensorId> OnnxImporter::AddConstant(const onnx::TensorProto& tensor,
                                                   const std::string& name, bool by_name,
                                                   std::string_view what) {
  ASSIGN_OR_RETURN(TensorHeader header, ReadTensorHeader(tensor, what));
  if (IsExternal(tensor) && !by_name) {
    return Unimplemented(what,
                         ": constants of functions and bodies must have their bytes in the model");
  }
  if (IsExternal(tensor) || (by_name && !rule_.StaysInline(name, header))) {
    return builder_->AddWeight(name, {header.dtype, Shape(header.dims)});
  }
  ASSIGN_OR_RETURN(HostTensor bytes, ReadInlineTensor(tensor, what));
  return builder_->AddConstant(name, std::move(bytes), by_name);
}

absl::StatusOr<std::vector<TensorId>> OnnxImporter::AddConstantNode(const FlatNode& node,
                                                                    const std::string& output) {
  std::string what = DescribeNode(node.name, node.op);
  bool in_function = node.attributes != nullptr || body_ != &main_;
  onnx::NodeProto resolved;  // a function's Constant may refer to the function's attributes
  const onnx::NodeProto* proto = node.proto;
  if (in_function) {
    for (const onnx::AttributeProto& written : proto->attribute()) {
      const onnx::AttributeProto* attribute = FindAttribute(node, written.name());
      if (attribute == nullptr) continue;
      onnx::AttributeProto* copy = resolved.add_attribute();
      *copy = *attribute;
      copy->set_name(written.name());
    }
    proto = &resolved;
  }
  if (proto->attribute_size() == 1 && proto->attribute(0).has_t() &&
      proto->attribute(0).name() == "value") {
    ASSIGN_OR_RETURN(TensorId id, AddConstant(proto->attribute(0).t(), output, !in_function, what));
    return std::vector<TensorId>{id};
  }
  ASSIGN_OR_RETURN(onnx::TensorProto tensor, ConstantNodeTensor(*proto, what));
  ASSIGN_OR_RETURN(TensorId id, AddConstant(tensor, output, !in_function, what));
  return std::vector<TensorId>{id};
}

absl::StatusOr<std::vector<TensorId>> OnnxImporter::AddNormalNode(
    NormalNode normal, const std::string& name, const std::vector<std::string>& names) {
  const bool extremum = normal.def->name == "ReduceMax" || normal.def->name == "ReduceMin";
  const bool of_bools = extremum && names.size() == 1 && !normal.inputs.empty() &&
                        normal.inputs[0] != kNoTensor &&
                        builder_->tensor(normal.inputs[0]).type.dtype == DType::kBool;
  auto cast = [&](TensorId x, DType type, const std::string& output) {
    return builder_->AddNode("Cast", {x}, {{"to", std::string(DTypeName(type))}}, name, output);
  };
  if (of_bools) {
    ASSIGN_OR_RETURN(normal.inputs[0], cast(normal.inputs[0], DType::kU8, ""));
  }
  auto outputs =
      builder_->AddMultiNode(*normal.def, std::move(normal.inputs), std::move(normal.attrs), name,
                             of_bools ? std::vector<std::string>{""} : names);
  if (!of_bools || !outputs.ok()) return outputs;
  ASSIGN_OR_RETURN(TensorId y, cast((*outputs)[0], DType::kBool, names[0]));
  return std::vector<TensorId>{y};
}

void OnnxImporter::SetSeed(const FlatNode& node, NormalNode* normal) {
  if (!DrawsNumbers(normal->def->name) || normal->attrs.Has("seed")) return;
  normal->attrs.Set("seed", static_cast<double>(unseeded_++));
  if (options_.warnings == nullptr) return;
  options_.warnings->insert(StrCat(
      DescribeNode(node.name, node.op),
      ": has no seed: it gives the same numbers at every run; make them an input of the model if "
      "they must differ"));
}

absl::StatusOr<std::vector<TensorId>> OnnxImporter::AddOperator(const FlatNode& node,
                                                                std::vector<TensorId> inputs,
                                                                std::vector<std::string> names) {
  RETURN_IF_ERROR(AlignOldOperand(node, &inputs, builder_));
  ASSIGN_OR_RETURN(NormalNode normal, NormaliseNode(node, inputs, *builder_, options_.custom_ops));
  if (const auto* body = normal.attrs.Find<std::string>("body"); normal.def->internal && body) {
    custom_bytes_ += static_cast<int64_t>(body->size());
    if (custom_bytes_ > kMaxCustomBytes) {
      return ResourceExhausted(DescribeNode(node.name, node.op),
                               ": the custom ops of the model "
                               "have more than ",
                               kMaxCustomBytes, " bytes when written out");
    }
  }
  SetSeed(node, &normal);
  RETURN_IF_ERROR(
      Annotate(CheckNamedOutputs(*normal.def, names.size()), DescribeNode(node.name, node.op)));
  // Optional outputs without readers are not computed.
  while (!normal.def->outputs && names.size() > 1 && !IsUsed(node.outputs[names.size() - 1])) {
    names.pop_back();
  }
  auto outputs = AddNormalNode(std::move(normal), body_->prefix + node.name, names);
  if (outputs.ok()) return outputs;
  return WithInputs(outputs.status(), inputs);
}

absl::Status OnnxImporter::WithInputs(const absl::Status& status,
                                      const std::vector<TensorId>& inputs) const {
  constexpr size_t kMostNamed = 4;
  std::vector<TensorType> types;
  std::vector<std::string> named;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == kNoTensor) continue;
    const Tensor& tensor = builder_->tensor(inputs[i]);
    types.push_back(tensor.type);
    const bool meant = Message(status).find(StrCat("input ", i)) != std::string_view::npos;
    if (!meant || tensor.name.empty() || named.size() == kMostNamed) continue;
    named.push_back(StrCat("input ", i, " is ", QuoteShort(tensor.name)));
  }
  std::string message(Message(status));
  if (!named.empty()) StrAppend(&message, StrCat("; ", StrJoin(named, ", ")));
  const std::string hint = symbols_.OpenSymbolHint(types);
  if (!hint.empty()) StrAppend(&message, StrCat("; ", hint));
  return absl::Status(status.code(), message);
}

absl::StatusOr<std::vector<Item>> OnnxImporter::ItemsOf(const std::vector<ValueRef>& refs) {
  std::vector<Item> items;
  for (ValueRef ref : refs) {
    auto held = body_->collections.find(ref);
    if (held != body_->collections.end()) {
      CountElements(held->second);
      items.push_back({.tensor = kNoTensor, .collection = held->second});
      continue;
    }
    ASSIGN_OR_RETURN(TensorId id, TensorOf(ref));
    items.push_back({.tensor = id, .collection = std::nullopt});
  }
  return items;
}

absl::Status OnnxImporter::AddCollecting(const FlatNode& node) {
  ASSIGN_OR_RETURN(std::vector<Item> items, ItemsOf(node.inputs));
  const bool moves = node.domain.empty() && node.op == "Identity" && items.size() == 1;
  if (!moves && !IsCollectionOp(node)) {
    for (size_t i = 0; i < items.size(); ++i) {
      if (!items[i].collection) continue;
      return RefuseCollection(node, i, value(node.inputs[i]).name, *items[i].collection);
    }
  }
  if (node.op == "SequenceMap") return AddSequenceMap(node, items);
  const std::string name =
      node.outputs[0] == kNoValueRef ? "" : body_->prefix + value(node.outputs[0]).name;
  FlatNode named = node;
  named.name = body_->prefix + node.name;
  ASSIGN_OR_RETURN(Item made, AddCollectionOp(
                                  named, items, name, [this] { return CountNode(); }, builder_));
  return Give(node.outputs[0], std::move(made));
}

absl::Status OnnxImporter::Give(ValueRef ref, Item item) {
  if (ref == kNoValueRef) return absl::OkStatus();
  if (item.collection) {
    body_->collections[ref] = *std::move(item.collection);
    return absl::OkStatus();
  }
  body_->ids[static_cast<size_t>(ref)] = item.tensor;
  return CheckType(ref, item.tensor);
}

absl::Status OnnxImporter::AddNode(const FlatNode& node) {
  const AtNode at(node.name, node.op);
  Job::Step();
  if (node.outputs.empty()) {
    return InvalidArgument(DescribeNode(node.name, node.op), ": has no output");
  }
  if (IsControlFlow(node)) return AddFlow(node);
  const bool collects = IsCollectionOp(node) ||
                        (!body_->collections.empty() &&
                         std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueRef ref) {
                           return body_->collections.count(ref) != 0;
                         }));
  if (collects) return AddCollecting(node);
  const bool constant = node.domain.empty() && node.op == "Constant";
  if (constant && body_ != &main_ && node.outputs[0] != kNoValueRef &&
      body_->constants[static_cast<size_t>(node.outputs[0])] != kNoTensor) {
    return absl::OkStatus();
  }
  std::vector<TensorId> inputs;
  for (ValueRef ref : node.inputs) {
    ASSIGN_OR_RETURN(TensorId id, TensorOf(ref));
    inputs.push_back(id);
  }
  ASSIGN_OR_RETURN(std::vector<std::string> names, NamesOf(node));
  absl::StatusOr<std::vector<TensorId>> outputs;
  if (constant) {
    outputs = AddConstantNode(node, names[0]);
  } else if (node.domain.empty() && node.op == "Dropout") {
    bool mask = node.outputs.size() > 1 && IsUsed(node.outputs[1]);
    names.resize(std::max<size_t>(names.size(), 2));
    outputs = AddDropout(node, inputs, mask, names, builder_);
  } else if (IsFlexAttention(node)) {
    outputs = AddFlex(node, inputs, names[0]);
  } else {
    outputs = AddOperator(node, inputs, std::move(names));
  }
  RETURN_IF_ERROR(outputs.status());
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    TensorId id = i < outputs->size() ? (*outputs)[i] : kNoTensor;
    if (id == kNoTensor && IsUsed(node.outputs[i])) return HasNoOutput(node, i);
    if (id == kNoTensor || node.outputs[i] == kNoValueRef) continue;
    body_->ids[static_cast<size_t>(node.outputs[i])] = id;
    if (constant && body_ != &main_) body_->constants[static_cast<size_t>(node.outputs[i])] = id;
    RETURN_IF_ERROR(CheckType(node.outputs[i], id));
  }
  return absl::OkStatus();
}

namespace {

absl::Status AlreadyFused(const onnx::NodeProto& call) {
  const std::string& name =
      call.name().empty() && call.output_size() > 0 ? call.output(0) : call.name();
  return InvalidArgument("ALREADY_FUSED: ", DescribeNode(name, call.op_type()), ": is of domain ",
                         Quote(kGroupDomain),
                         ", a group that an export of a plan has written; "
                         "expected the model as it was before, or a request with allow_fused "
                         "(fusionctl: --allow-fused)");
}

}  // namespace

absl::StatusOr<Graph> ImportOnnx(const onnx::ModelProto& model, const ImportOptions& options) {
  if (!model.has_graph()) return InvalidArgument("the model has no graph");
  if (model.graph().sparse_initializer_size() > 0) {
    return Unimplemented("initializer ",
                         QuoteShort(model.graph().sparse_initializer(0).values().name()),
                         " is sparse; only dense initializers are supported");
  }
  const onnx::NodeProto* call = FindGroupCall(model);
  if (call == nullptr) return OnnxImporter(model, options).Run();
  if (!options.allow_fused) return AlreadyFused(*call);
  onnx::ModelProto opened = model;
  OpenGroups(&opened);
  return OnnxImporter(opened, options).Run();
}

}  // namespace fusion
