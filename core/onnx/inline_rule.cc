#include "core/onnx/inline_rule.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <vector>

#include "core/tensor/onnx_dtype.h"

namespace fusion {
namespace {

// What the op does with the value of an input.
enum class Use { kAddress, kPass, kOther };

bool IsOneOf(std::string_view op, std::initializer_list<std::string_view> ops) {
  return std::find(ops.begin(), ops.end(), op) != ops.end();
}

bool CastsToInteger(const onnx::NodeProto& node) {
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.name() != "to") continue;
    auto dtype = DTypeFromOnnx(attribute.i());
    return dtype && !IsFloat(*dtype);
  }
  return false;
}

Use UseOf(const onnx::NodeProto& node, int input) {
  if (!node.domain().empty() && node.domain() != "ai.onnx") return Use::kOther;
  std::string_view op = node.op_type();
  if (IsOneOf(op, {"Shape", "Size", "ConstantOfShape", "Range"})) return Use::kAddress;
  if (op == "Where") return input == 0 ? Use::kAddress : Use::kPass;
  if (op == "OneHot") return input < 2 ? Use::kAddress : Use::kOther;
  if (op == "Cast") return CastsToInteger(node) ? Use::kPass : Use::kOther;
  bool reduction = op.substr(0, 6) == "Reduce";
  // First operand is moved or combined, the others say where.
  if (reduction ||
      IsOneOf(op, {"Gather", "GatherElements", "GatherND", "Slice", "Reshape", "Expand", "Tile",
                   "Split", "Squeeze", "Unsqueeze", "CumSum", "Trilu"})) {
    return input == 0 ? Use::kPass : Use::kAddress;
  }
  if (IsOneOf(op, {"Scatter", "ScatterElements", "ScatterND", "Pad"})) {
    bool address = input == 1 || (op == "Pad" && input == 3);
    return address ? Use::kAddress : Use::kPass;
  }
  if (op == "TopK") return input == 1 ? Use::kAddress : Use::kOther;
  if (op == "Resize") return input == 3 ? Use::kAddress : Use::kOther;
  bool pass = IsOneOf(op, {"Identity",
                           "Transpose",
                           "Concat",
                           "Flatten",
                           "And",
                           "Or",
                           "Not",
                           "Xor",
                           "Equal",
                           "Greater",
                           "GreaterOrEqual",
                           "Less",
                           "LessOrEqual",
                           "Add",
                           "Sub",
                           "Mul",
                           "Div",
                           "Mod",
                           "Neg",
                           "Abs",
                           "Sign",
                           "Min",
                           "Max"});
  return pass ? Use::kPass : Use::kOther;
}

// Names that the subgraphs of a node may capture.
void CollectCaptured(const onnx::NodeProto& node, std::vector<std::string_view>* names) {
  std::vector<const onnx::GraphProto*> open;
  auto open_subgraphs = [&open](const onnx::NodeProto& n) {
    for (const onnx::AttributeProto& attribute : n.attribute()) {
      if (attribute.has_g()) open.push_back(&attribute.g());
      for (const onnx::GraphProto& g : attribute.graphs()) open.push_back(&g);
    }
  };
  open_subgraphs(node);
  while (!open.empty()) {
    const onnx::GraphProto* graph = open.back();
    open.pop_back();
    for (const onnx::ValueInfoProto& output : graph->output()) names->push_back(output.name());
    for (const onnx::NodeProto& inner : graph->node()) {
      for (const std::string& input : inner.input()) names->push_back(input);
      open_subgraphs(inner);
    }
  }
}

}  // namespace

InlineRule::InlineRule(const onnx::GraphProto& graph, int64_t limit_bytes)
    : limit_bytes_(limit_bytes) {
  std::vector<std::string_view> open;
  auto note_other = [&](std::string_view name) {
    if (used_otherwise_.insert(name).second) open.push_back(name);
  };
  // Uses that only pass the value on: from the output back to the operands.
  std::unordered_map<std::string_view, std::vector<std::string_view>> passes;
  for (const onnx::ValueInfoProto& output : graph.output()) note_other(output.name());
  for (const onnx::NodeProto& node : graph.node()) {
    std::vector<std::string_view> captured;
    CollectCaptured(node, &captured);
    for (std::string_view name : captured) note_other(name);
    for (int i = 0; i < node.input_size(); ++i) {
      used_.insert(node.input(i));
      Use use = UseOf(node, i);
      if (use == Use::kOther) note_other(node.input(i));
      if (use != Use::kPass) continue;
      for (const std::string& output : node.output()) passes[output].push_back(node.input(i));
    }
  }
  while (!open.empty()) {
    std::string_view name = open.back();
    open.pop_back();
    auto from = passes.find(name);
    if (from == passes.end()) continue;
    for (std::string_view operand : from->second) note_other(operand);
  }
}

bool InlineRule::StaysInline(std::string_view name, const TensorHeader& header) const {
  if (header.bytes <= limit_bytes_) return true;
  if (IsFloat(header.dtype)) return false;
  bool shape_like = header.dtype == DType::kI64 || header.dtype == DType::kI32;
  if (shape_like && header.dims.size() <= 1) return true;
  return header.bytes <= kInlineMaskLimitBytes && used_.count(name) != 0 &&
         used_otherwise_.count(name) == 0;
}

}  // namespace fusion
