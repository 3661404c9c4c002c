#include "core/onnx/reference_weights.h"

#include <set>

#include "core/onnx/constant_node.h"
#include "core/onnx/external_data.h"
#include "core/onnx/group_calls.h"
#include "core/onnx/overridable.h"
#include "core/tensor/onnx_dtype.h"

namespace fusion {
namespace {

// Name, type and extents, no bytes.
onnx::TensorProto Bare(const TensorHeader& header, const std::string& name) {
  onnx::TensorProto out;
  out.set_name(name);
  out.set_data_type(DTypeToOnnx(header.dtype));
  for (int64_t d : header.dims) out.add_dims(d);
  ReferToClient(&out);
  return out;
}

// Bare() if the tensor is a weight, with bytes otherwise.
absl::StatusOr<onnx::TensorProto> Referenced(const onnx::TensorProto& tensor,
                                             const std::string& name, const InlineRule& rule,
                                             const std::string& directory, std::string_view what) {
  ASSIGN_OR_RETURN(TensorHeader header, ReadTensorHeader(tensor, what));
  if (!rule.StaysInline(name, header)) return Bare(header, name);
  if (!IsExternal(tensor)) {
    onnx::TensorProto out = tensor;
    out.clear_doc_string();
    return out;
  }
  ASSIGN_OR_RETURN(HostTensor value, ReadExternalTensor(tensor, directory, what));
  return MakeTensorProto(value, name);
}

// A Constant node whose value is a weight becomes value=reference; any other is copied.
absl::Status CopyConstantNode(const onnx::NodeProto& node, const InlineRule& rule,
                              const std::string& directory, onnx::NodeProto* out) {
  std::string name = node.output_size() > 0 ? node.output(0) : "";
  std::string what = StrCat("constant ", Quote(name));
  auto header = ConstantNodeHeader(node, what);
  bool weight = header.ok() && !rule.StaysInline(name, *header);
  bool plain = !weight && (node.attribute_size() != 1 || !node.attribute(0).has_t() ||
                           !IsExternal(node.attribute(0).t()));
  if (plain || !header.ok()) {  // the importer says what is wrong with it
    *out = node;
    out->clear_doc_string();
    return absl::OkStatus();
  }
  out->set_op_type(node.op_type());
  out->set_domain(node.domain());
  out->set_name(node.name());
  *out->mutable_output() = node.output();
  onnx::AttributeProto* value = out->add_attribute();
  value->set_name("value");
  value->set_type(onnx::AttributeProto::TENSOR);
  if (node.attribute(0).has_t()) {
    ASSIGN_OR_RETURN(*value->mutable_t(),
                     Referenced(node.attribute(0).t(), name, rule, directory, what));
    return absl::OkStatus();
  }
  *value->mutable_t() = Bare(*header, name);
  return absl::OkStatus();
}

// The graph whose uses of constants decide: groups are looked into. Without bytes; empty if the
// model has no group.
onnx::ModelProto OpenedWithoutBytes(const onnx::ModelProto& model) {
  onnx::ModelProto out;
  if (FindGroupCall(model) == nullptr) return out;
  *out.mutable_opset_import() = model.opset_import();
  *out.mutable_functions() = model.functions();
  onnx::GraphProto* graph = out.mutable_graph();
  *graph->mutable_input() = model.graph().input();
  *graph->mutable_output() = model.graph().output();
  for (const onnx::TensorProto& tensor : model.graph().initializer()) {
    graph->add_initializer()->set_name(tensor.name());
  }
  for (const onnx::NodeProto& node : model.graph().node()) {
    onnx::NodeProto* copy = graph->add_node();
    if (IsConstantNode(node)) {
      copy->set_op_type(node.op_type());
      *copy->mutable_output() = node.output();
    } else {
      *copy = node;
    }
  }
  OpenGroups(&out);
  return out;
}

absl::Status CopyNodes(const onnx::GraphProto& graph, const InlineRule& rule,
                       const std::string& directory, onnx::GraphProto* out) {
  for (const onnx::NodeProto& node : graph.node()) {
    onnx::NodeProto* copy = out->add_node();
    if (IsConstantNode(node)) {
      RETURN_IF_ERROR(CopyConstantNode(node, rule, directory, copy));
    } else {
      *copy = node;
      copy->clear_doc_string();
    }
  }
  return absl::OkStatus();
}

// An initialiser is left out, and the input of its name has a shape.
absl::Status MakeInput(const onnx::TensorProto& initializer, onnx::GraphProto* graph) {
  for (onnx::ValueInfoProto& input : *graph->mutable_input()) {
    if (input.name() != initializer.name()) continue;
    onnx::TypeProto::Tensor* type = input.mutable_type()->mutable_tensor_type();
    if (type->elem_type() != initializer.data_type()) {
      return InvalidArgument("input ", Quote(input.name()), ": declared ",
                             OnnxTypeName(type->elem_type()), ", its initialiser is ",
                             OnnxTypeName(initializer.data_type()));
    }
    if (type->has_shape()) continue;
    type->mutable_shape();
    for (int64_t dim : initializer.dims()) type->mutable_shape()->add_dim()->set_dim_value(dim);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<onnx::ModelProto> ReferenceWeights(const onnx::ModelProto& model,
                                                  const ReferenceOptions& options) {
  const onnx::GraphProto& graph = model.graph();
  const std::set<std::string> overridden(options.overridden.begin(), options.overridden.end());
  for (const std::string& name : overridden) RETURN_IF_ERROR(CheckOverridable(model, name));
  const onnx::ModelProto opened = OpenedWithoutBytes(model);
  InlineRule rule(opened.has_graph() ? opened.graph() : graph, options.limit_bytes);
  onnx::ModelProto out;
  if (model.has_ir_version()) out.set_ir_version(model.ir_version());
  *out.mutable_opset_import() = model.opset_import();
  *out.mutable_functions() = model.functions();
  onnx::GraphProto* copy = out.mutable_graph();
  copy->set_name(graph.name());
  *copy->mutable_input() = graph.input();
  *copy->mutable_output() = graph.output();
  *copy->mutable_value_info() = graph.value_info();
  *copy->mutable_sparse_initializer() = graph.sparse_initializer();
  for (const onnx::TensorProto& tensor : graph.initializer()) {
    if (overridden.contains(tensor.name())) {
      RETURN_IF_ERROR(MakeInput(tensor, copy));
      continue;
    }
    std::string what = StrCat("initializer ", Quote(tensor.name()));
    ASSIGN_OR_RETURN(*copy->add_initializer(),
                     Referenced(tensor, tensor.name(), rule, options.directory, what));
  }
  RETURN_IF_ERROR(CopyNodes(graph, rule, options.directory, copy));
  return out;
}

}  // namespace fusion
