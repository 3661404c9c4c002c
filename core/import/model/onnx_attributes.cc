#include "core/import/model/onnx_attributes.h"

#include "core/onnx/tensor_proto.h"

namespace fusion {
namespace {

constexpr int kLastOpsetOfConsumedInputs = 5;

// What a reference stands for: the attribute itself unless it names one of the function's.
const onnx::AttributeProto* Resolve(const FlatNode& node, const onnx::AttributeProto& attribute) {
  if (attribute.ref_attr_name().empty()) return &attribute;
  if (node.attributes == nullptr) return nullptr;
  auto it = node.attributes->find(attribute.ref_attr_name());
  return it == node.attributes->end() ? nullptr : it->second;
}

// Files of the first ONNX versions say no type.
onnx::AttributeProto::AttributeType TypeOf(const onnx::AttributeProto& a) {
  if (a.type() != onnx::AttributeProto::UNDEFINED) return a.type();
  if (a.has_i()) return onnx::AttributeProto::INT;
  if (a.has_f()) return onnx::AttributeProto::FLOAT;
  if (a.has_s()) return onnx::AttributeProto::STRING;
  if (a.has_t()) return onnx::AttributeProto::TENSOR;
  if (a.has_g()) return onnx::AttributeProto::GRAPH;
  if (a.ints_size() > 0) return onnx::AttributeProto::INTS;
  if (a.floats_size() > 0) return onnx::AttributeProto::FLOATS;
  if (a.strings_size() > 0) return onnx::AttributeProto::STRINGS;
  return onnx::AttributeProto::UNDEFINED;
}

absl::StatusOr<AttrValue> ReadValue(const onnx::AttributeProto& a, std::string_view what) {
  auto type = TypeOf(a);
  switch (type) {
    case onnx::AttributeProto::INT:
      return AttrValue(int64_t{a.i()});
    case onnx::AttributeProto::FLOAT:
      return AttrValue(static_cast<double>(a.f()));
    case onnx::AttributeProto::STRING:
      return AttrValue(a.s());
    case onnx::AttributeProto::INTS:
      return AttrValue(std::vector<int64_t>(a.ints().begin(), a.ints().end()));
    case onnx::AttributeProto::FLOATS:
      return AttrValue(std::vector<double>(a.floats().begin(), a.floats().end()));
    case onnx::AttributeProto::STRINGS:
      return AttrValue(StrJoin(a.strings(), ",", [](const std::string& s) { return s; }));
    case onnx::AttributeProto::TENSOR: {
      ASSIGN_OR_RETURN(HostTensor tensor, ReadInlineTensor(a.t(), what));
      return AttrValue(std::make_shared<const HostTensor>(std::move(tensor)));
    }
    case onnx::AttributeProto::UNDEFINED:
      return InvalidArgument(what, ": has no value");
    default:
      return Unimplemented(what, ": attributes of kind ",
                           onnx::AttributeProto::AttributeType_Name(type), " are not supported");
  }
}

}  // namespace

absl::StatusOr<AttrMap> ReadAttributes(const FlatNode& node) {
  AttrMap out;
  for (const onnx::AttributeProto& written : node.proto->attribute()) {
    std::string what = StrCat("attribute ", QuoteShort(written.name()));
    if (written.name() == "consumed_inputs" && node.opset <= kLastOpsetOfConsumedInputs) continue;
    if (out.Has(written.name())) return InvalidArgument(what, " is given twice");
    const onnx::AttributeProto* attribute = Resolve(node, written);
    if (attribute == nullptr) {
      if (node.attributes != nullptr) continue;
      return InvalidArgument(what,
                             " refers to an attribute of a function, outside of any function");
    }
    ASSIGN_OR_RETURN(AttrValue value, ReadValue(*attribute, what));
    out.Set(written.name(), std::move(value));
  }
  return out;
}

const onnx::AttributeProto* FindAttribute(const FlatNode& node, std::string_view name) {
  for (const onnx::AttributeProto& written : node.proto->attribute()) {
    if (written.name() == name) return Resolve(node, written);
  }
  return nullptr;
}

}  // namespace fusion
