#include "core/onnx/constant_node.h"

namespace fusion {
namespace {

template <typename T, typename Field>
HostTensor FromList(DType dtype, const Field& values) {
  HostTensor out(dtype, {values.size()});
  for (int i = 0; i < values.size(); ++i) {
    out.data<T>()[static_cast<size_t>(i)] = values.Get(i);
  }
  return out;
}

// The attribute that holds the value; there must be exactly one.
absl::StatusOr<const onnx::AttributeProto*> ValueAttribute(const onnx::NodeProto& node,
                                                           std::string_view what) {
  const onnx::AttributeProto* found = nullptr;
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    std::string_view name = attribute.name();
    if (name == "sparse_value" || name == "value_string" || name == "value_strings") {
      return Unimplemented(what, ": constants given as ", name, " are not supported");
    }
    bool value = name == "value" || name == "value_int" || name == "value_ints" ||
                 name == "value_float" || name == "value_floats";
    if (!value) return InvalidArgument(what, ": unknown attribute ", Quote(name));
    if (found != nullptr) {
      return InvalidArgument(what, ": has the attributes ", found->name(), " and ", name,
                             ", expected one value");
    }
    found = &attribute;
  }
  if (found == nullptr) return InvalidArgument(what, ": has no value");
  if (found->name() == "value" && !found->has_t()) {
    return InvalidArgument(what, ": attribute \"value\" is no tensor");
  }
  return found;
}

}  // namespace

absl::StatusOr<onnx::TensorProto> ConstantNodeTensor(const onnx::NodeProto& node,
                                                     std::string_view what) {
  ASSIGN_OR_RETURN(const onnx::AttributeProto* attribute, ValueAttribute(node, what));
  std::string name = node.output_size() > 0 ? node.output(0) : "";
  if (attribute->name() == "value") {
    onnx::TensorProto out = attribute->t();
    out.set_name(name);
    return out;
  }
  if (attribute->name() == "value_ints") {
    return MakeTensorProto(FromList<int64_t>(DType::kI64, attribute->ints()), name);
  }
  if (attribute->name() == "value_floats") {
    return MakeTensorProto(FromList<float>(DType::kF32, attribute->floats()), name);
  }
  bool integer = attribute->name() == "value_int";
  HostTensor scalar(integer ? DType::kI64 : DType::kF32, {});
  if (integer) {
    scalar.data<int64_t>()[0] = attribute->i();
  } else {
    scalar.data<float>()[0] = attribute->f();
  }
  return MakeTensorProto(scalar, name);
}

absl::StatusOr<TensorHeader> ConstantNodeHeader(const onnx::NodeProto& node,
                                                std::string_view what) {
  ASSIGN_OR_RETURN(const onnx::AttributeProto* attribute, ValueAttribute(node, what));
  if (attribute->name() == "value") return ReadTensorHeader(attribute->t(), what);
  bool integer = attribute->name() == "value_int" || attribute->name() == "value_ints";
  TensorHeader header{.dtype = integer ? DType::kI64 : DType::kF32, .dims = {}};
  if (attribute->name() == "value_ints") header.dims = {attribute->ints_size()};
  if (attribute->name() == "value_floats") header.dims = {attribute->floats_size()};
  header.bytes = NumElements(header.dims) * DTypeBytes(header.dtype);
  header.stored_bytes = header.bytes;
  return header;
}

}  // namespace fusion
