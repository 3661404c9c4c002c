#include "core/import/model/normalise.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "core/import/model/onnx_attributes.h"
#include "core/op/body/loop_body_text.h"
#include "core/tensor/dtype.h"

namespace fusion {
namespace {

constexpr int64_t kMaxParamElements = 1 << 16;

absl::Status CheckOpset(const FlatNode& node, const OpDef& def) {
  // Models of ONNX Runtime may leave out the version of its domain, of which there is one.
  if (node.opset == 0 && node.domain == "com.microsoft") return absl::OkStatus();
  if (node.opset == 0) {
    return InvalidArgument("the model imports no opset of domain ", QuoteShort(node.domain));
  }
  if (node.opset >= def.min_opset && node.opset <= def.max_opset) return absl::OkStatus();
  return Unimplemented("opset ", node.opset, " of domain ", QuoteShort(node.domain),
                       " is not supported for this op; supported opsets: ", def.min_opset, "..",
                       def.max_opset);
}

std::string_view KindName(ParamSpec::Kind kind) {
  switch (kind) {
    case ParamSpec::kInt:
      return "one integer";
    case ParamSpec::kInts:
      return "a list of integers";
    case ParamSpec::kFloat:
      return "one float";
    case ParamSpec::kFloats:
      return "a list of floats";
    case ParamSpec::kString:
      return "a string";
    case ParamSpec::kTensor:
      return "a tensor";
    case ParamSpec::kRepeat:
      return "a body";
  }
  return "";
}

// The value of a constant input as the attribute it stands for.
absl::StatusOr<AttrValue> ParamValue(const ParamSpec& param,
                                     const std::shared_ptr<const HostTensor>& value) {
  const HostTensor& t = *value;
  if (param.kind == ParamSpec::kTensor) return AttrValue(value);
  bool list = param.kind == ParamSpec::kInts || param.kind == ParamSpec::kFloats;
  bool integers = param.kind == ParamSpec::kInt || param.kind == ParamSpec::kInts;
  bool flag = param.kind == ParamSpec::kInt && t.dtype() == DType::kBool;
  bool type_fits = integers ? IsInteger(t.dtype()) || flag : IsFloat(t.dtype());
  bool shape_fits =
      list ? t.dims().size() <= 1 && t.elements() <= kMaxParamElements : t.elements() == 1;
  if (param.kind == ParamSpec::kString || !type_fits || !shape_fits) {
    return InvalidArgument("is ", DTypeName(t.dtype()), DimsToString(t.dims()), ", expected ",
                           KindName(param.kind));
  }
  switch (param.kind) {
    case ParamSpec::kInt:
      return AttrValue(t.GetInt(0));
    case ParamSpec::kFloat:
      return AttrValue(t.GetDouble(0));
    case ParamSpec::kInts: {
      std::vector<int64_t> out;
      for (int64_t i = 0; i < t.elements(); ++i) out.push_back(t.GetInt(i));
      return AttrValue(std::move(out));
    }
    default: {
      std::vector<double> out;
      for (int64_t i = 0; i < t.elements(); ++i) out.push_back(t.GetDouble(i));
      return AttrValue(std::move(out));
    }
  }
}

// "input 2 "s" (scales)".
std::string DescribeInput(int number, const Tensor& tensor, std::string_view name) {
  return StrCat("input ", number, " ", QuoteShort(tensor.name), " (", name, ")");
}

// Moves one parameter that this node passes as an input to its attributes.
absl::Status TakeParam(const ParamSpec& param, TensorId id, const GraphBuilder& builder,
                       AttrMap* attrs) {
  const Tensor& tensor = builder.tensor(id);
  auto what = [&] { return DescribeInput(param.onnx_input, tensor, param.name); };
  if (tensor.value == nullptr && param.unknown_is_absent) return absl::OkStatus();
  if (attrs->Has(param.name)) {
    return InvalidArgument(what(), " is also given as an attribute");
  }
  if (tensor.kind == TensorKind::kWeight || tensor.value == nullptr) {
    return NotConstant(param.onnx_input, tensor, param.name);
  }
  auto value = ParamValue(param, tensor.value);
  if (!value.ok()) return Annotate(value.status(), what());
  attrs->Set(param.name, *std::move(value));
  return absl::OkStatus();
}

absl::Status TakeParams(const OpDef& def, const GraphBuilder& builder, NormalNode* node) {
  std::vector<bool> is_param(node->inputs.size(), false);
  TensorId last = kNoTensor;
  for (const ParamSpec& param : def.params) {
    auto at = static_cast<size_t>(param.onnx_input);
    if (param.onnx_input < 0 || at >= node->inputs.size()) continue;
    is_param[at] = true;
    if (node->inputs[at] == kNoTensor) continue;
    if (param.unknown_is_operand && builder.tensor(node->inputs[at]).value == nullptr) {
      last = node->inputs[at];
      continue;
    }
    RETURN_IF_ERROR(TakeParam(param, node->inputs[at], builder, &node->attrs));
  }
  std::vector<TensorId> operands;
  for (size_t i = 0; i < is_param.size(); ++i) {
    if (!is_param[i]) operands.push_back(node->inputs[i]);
  }
  if (last != kNoTensor) {
    operands.resize(static_cast<size_t>(def.max_inputs - 1), kNoTensor);
    operands.push_back(last);
  }
  node->inputs = std::move(operands);
  return absl::OkStatus();
}

// Resize of opset 10 has its scales where later ones have the region, which a run may decide.
absl::Status CheckOldResize(const FlatNode& from, const GraphBuilder& builder,
                            const NormalNode& node) {
  if (node.def->name != "Resize" || from.opset > 10 || node.inputs.size() < 2 ||
      node.inputs[1] == kNoTensor) {
    return absl::OkStatus();
  }
  return NotConstant(1, builder.tensor(node.inputs[1]), "scales");
}

absl::Status Rewrite(const FlatNode& from, const GraphBuilder& builder, NormalNode* node) {
  if (!node->def->normalise) return absl::OkStatus();
  std::vector<std::optional<TensorType>> types;
  for (TensorId id : node->inputs) {
    types.push_back(id == kNoTensor ? std::nullopt : std::optional(builder.tensor(id).type));
  }
  OnnxCall call{.opset = static_cast<int>(from.opset), .attrs = node->attrs, .inputs = types};
  return node->def->normalise(call);
}

void DropUnknown(const OpDef& def, AttrMap* attrs) {
  const AttrMap given = *attrs;
  for (const auto& attr : given) {
    const std::string& name = attr.first;
    const bool known = std::any_of(def.params.begin(), def.params.end(),
                                   [&](const ParamSpec& p) { return p.name == name; });
    if (!known) attrs->Erase(name);
  }
}

}  // namespace

absl::Status NotConstant(int number, const Tensor& tensor, std::string_view name) {
  const std::string what = DescribeInput(number, tensor, name);
  if (tensor.kind == TensorKind::kWeight) {
    return InvalidArgument(what, " is a ", tensor.type.ToString(),
                           " whose bytes are not in the model; the plan depends on its values,"
                           " send them inline");
  }
  return Unimplemented(
      what, " is ", tensor.kind == TensorKind::kInput ? "a graph input" : "computed at run time",
      "; only constants are supported here (fusionctl: --fix NAME=VALUE gives an input its value)");
}

absl::Status UnsupportedOp(const FlatNode& node) {
  std::string shown = node.domain.empty() ? "ai.onnx" : node.domain;
  return Unimplemented(
      DescribeNode(node.name, node.op), ": op ", QuoteShort(node.op), " of domain ",
      QuoteShort(shown), ", opset ", node.opset,
      ", is not supported; fusionctl capabilities --ops lists those that are, and the "
      "option custom_ops defines others");
}

void CastByType(const GraphBuilder& builder, NormalNode* node) {
  const bool whole = node->def->name == "CastLike" && node->inputs.size() == 2 &&
                     node->inputs[0] != kNoTensor && node->inputs[1] != kNoTensor;
  if (!whole) return;
  const DType type = builder.tensor(node->inputs[1]).type.dtype;
  node->def = FindOp("Cast");
  node->inputs.pop_back();
  node->attrs.Set("to", std::string(DTypeName(type)));
  if (IsNarrowFloat(type)) return;
  node->attrs.Erase("saturate");
  node->attrs.Erase("round_mode");
}

absl::Status CheckNarrowTypes(const NormalNode& node, const GraphBuilder& builder) {
  static const auto* const kTaken = new std::set<std::string_view>{
      "BitCast",         "Cast",         "CastLike",  "Compress",  "Concat",
      "Custom",          "DepthToSpace", "Expand",    "Flatten",   "DequantizeLinear",
      "Gather",          "GatherND",     "Identity",  "Pad",       "GatherElements",
      "Repeat",          "Reshape",      "ScatterND", "Shape",     "QuantizeLinear",
      "ScatterElements", "Size",         "Slice",     "Split",     "SpaceToDepth",
      "Squeeze",         "Tile",         "Transpose", "Unsqueeze", "Where"};
  if (kTaken->count(node.def->name) != 0) return absl::OkStatus();
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoTensor) continue;
    const Tensor& input = builder.tensor(node.inputs[i]);
    if (!IsNarrowFloat(input.type.dtype) && !IsNarrowInteger(input.type.dtype)) continue;
    return Unimplemented("input ", i, " ", QuoteShort(input.name), " is ",
                         DTypeName(input.type.dtype),
                         ", which this op does not compute on; cast it before");
  }
  return absl::OkStatus();
}

absl::StatusOr<NormalNode> CustomNode(const CustomOpSyntax& op, const std::vector<TensorId>& inputs,
                                      const AttrMap& attrs, const GraphBuilder& builder) {
  std::vector<std::optional<TensorType>> types;
  for (TensorId id : inputs) {
    types.push_back(id == kNoTensor ? std::nullopt : std::optional(builder.tensor(id).type));
  }
  ASSIGN_OR_RETURN(CustomCall call, Instantiate(op, types, attrs));
  auto operand = [](size_t i) { return StrCat("in", i); };
  NormalNode out{.def = FindOp("Custom"),
                 .attrs = {{"body", LoopBodyToString(call.body, operand)}}};
  for (int input : call.inputs) out.inputs.push_back(inputs[static_cast<size_t>(input)]);
  return out;
}

absl::Status CheckNamedOutputs(const OpDef& def, size_t outputs) {
  const int most = def.named_outputs();
  if (!def.counted || outputs <= static_cast<size_t>(most)) return absl::OkStatus();
  return InvalidArgument("has ", outputs, " outputs, expected 1",
                         most > 1 ? StrCat("..", most) : "");
}

absl::StatusOr<NormalNode> NormaliseNode(const FlatNode& node, std::vector<TensorId> inputs,
                                         const GraphBuilder& builder, const CustomOps* custom_ops) {
  if (const auto* op = custom_ops == nullptr ? nullptr : custom_ops->Find(node.domain, node.op)) {
    auto custom = [&]() -> absl::StatusOr<NormalNode> {
      ASSIGN_OR_RETURN(AttrMap attrs, ReadAttributes(node));
      return CustomNode(*op, inputs, attrs, builder);
    };
    absl::StatusOr<NormalNode> made = custom();
    if (!made.ok()) return Annotate(made.status(), DescribeNode(node.name, node.op));
    return made;
  }
  const std::string name = node.domain.empty() ? node.op : StrCat(node.domain, ".", node.op);
  NormalNode out{.def = FindModelOp(name), .inputs = std::move(inputs)};
  if (out.def == nullptr) return UnsupportedOp(node);
  auto convert = [&]() -> absl::Status {
    RETURN_IF_ERROR(CheckOpset(node, *out.def));
    ASSIGN_OR_RETURN(out.attrs, ReadAttributes(node));
    if (node.opset < out.def->lenient_below) DropUnknown(*out.def, &out.attrs);
    RETURN_IF_ERROR(TakeParams(*out.def, builder, &out));
    RETURN_IF_ERROR(CheckOldResize(node, builder, out));
    RETURN_IF_ERROR(CheckNarrowTypes(out, builder));
    RETURN_IF_ERROR(Rewrite(node, builder, &out));
    CastByType(builder, &out);
    return absl::OkStatus();
  };
  absl::Status status = convert();
  if (!status.ok()) return Annotate(status, DescribeNode(node.name, node.op));
  return out;
}

}  // namespace fusion
