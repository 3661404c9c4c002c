#include "core/import/model/functions.h"

#include <google/protobuf/unknown_field_set.h>

#include "core/onnx/constant_node.h"

namespace fusion {
namespace {

// Fields of later versions of onnx.proto than the one we link.
constexpr int kNodeOverload = 8;
constexpr int kFunctionOverload = 13;
constexpr int kFunctionDefaults = 11;

template <typename Message>
std::string UnknownString(const Message& message, int number) {
  const google::protobuf::UnknownFieldSet& fields = message.unknown_fields();
  for (int i = 0; i < fields.field_count(); ++i) {
    const google::protobuf::UnknownField& field = fields.field(i);
    bool text = field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED;
    if (text && field.number() == number) return field.length_delimited();
  }
  return "";
}

std::vector<onnx::AttributeProto> ReadDefaults(const onnx::FunctionProto& function) {
  std::vector<onnx::AttributeProto> out;
  const google::protobuf::UnknownFieldSet& fields = function.unknown_fields();
  for (int i = 0; i < fields.field_count(); ++i) {
    const google::protobuf::UnknownField& field = fields.field(i);
    bool message = field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED;
    if (!message || field.number() != kFunctionDefaults) continue;
    onnx::AttributeProto attribute;
    if (attribute.ParseFromString(field.length_delimited())) out.push_back(std::move(attribute));
  }
  return out;
}

}  // namespace

std::string NormalDomain(const std::string& domain) {
  return IsDefaultDomain(domain) ? std::string() : domain;
}

absl::StatusOr<OpsetMap> ReadOpsets(
    const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports) {
  OpsetMap out;
  for (const onnx::OperatorSetIdProto& import : imports) {
    auto [it, added] = out.emplace(NormalDomain(import.domain()), import.version());
    if (!added && it->second != import.version()) {
      return InvalidArgument("opset of domain ", QuoteShort(it->first), " is imported in versions ",
                             it->second, " and ", import.version());
    }
  }
  return out;
}

absl::StatusOr<FunctionTable> FunctionTable::Make(const onnx::ModelProto& model) {
  FunctionTable out;
  for (const onnx::FunctionProto& proto : model.functions()) {
    auto opsets = ReadOpsets(proto.opset_import());
    std::string what =
        StrCat("function ", QuoteShort(proto.name()), " of domain ", QuoteShort(proto.domain()));
    if (!opsets.ok()) return Annotate(opsets.status(), what);
    Function function{.proto = &proto, .opsets = *std::move(opsets), .defaults = {}};
    function.defaults = ReadDefaults(proto);
    auto key = std::make_tuple(NormalDomain(proto.domain()), proto.name(),
                               UnknownString(proto, kFunctionOverload));
    if (!out.functions_.emplace(key, std::move(function)).second) {
      return InvalidArgument(what, " is defined twice");
    }
  }
  return out;
}

const FunctionTable::Function* FunctionTable::Find(const onnx::NodeProto& node) const {
  if (functions_.empty()) return nullptr;
  auto it = functions_.find(std::make_tuple(NormalDomain(node.domain()), node.op_type(),
                                            UnknownString(node, kNodeOverload)));
  return it == functions_.end() ? nullptr : &it->second;
}

}  // namespace fusion
