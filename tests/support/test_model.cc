#include "tests/support/test_model.h"

#include "core/onnx/external_data.h"
#include "core/tensor/onnx_dtype.h"

namespace fusion {
namespace {

void SetType(onnx::ValueInfoProto* info, const std::string& name,
             const std::vector<TestModel::TestDim>& dims, DType dtype) {
  info->set_name(name);
  auto* type = info->mutable_type()->mutable_tensor_type();
  type->set_elem_type(DTypeToOnnx(dtype));
  auto* shape = type->mutable_shape();
  for (const TestModel::TestDim& dim : dims) {
    auto* d = shape->add_dim();
    if (const auto* number = std::get_if<int>(&dim)) d->set_dim_value(*number);
    if (const auto* number = std::get_if<int64_t>(&dim)) d->set_dim_value(*number);
    if (const auto* symbol = std::get_if<const char*>(&dim)) {
      if (**symbol != '\0') d->set_dim_param(*symbol);
    }
  }
}

onnx::AttributeProto* AddAttribute(onnx::NodeProto* node, const std::string& name,
                                   onnx::AttributeProto::AttributeType type) {
  onnx::AttributeProto* a = node->add_attribute();
  a->set_name(name);
  a->set_type(type);
  return a;
}

}  // namespace

TestModel::TestModel(int opset) {
  proto_.set_ir_version(8);
  proto_.add_opset_import()->set_version(opset);
  proto_.mutable_graph()->set_name("test");
}

TestModel& TestModel::Input(const std::string& name, const std::vector<TestDim>& dims,
                            DType dtype) {
  SetType(graph()->add_input(), name, dims, dtype);
  return *this;
}

TestModel& TestModel::Output(const std::string& name) {
  graph()->add_output()->set_name(name);
  return *this;
}

TestModel& TestModel::Output(const std::string& name, const std::vector<TestDim>& dims,
                             DType dtype) {
  SetType(graph()->add_output(), name, dims, dtype);
  return *this;
}

TestModel& TestModel::Declare(const std::string& name, const std::vector<TestDim>& dims,
                              DType dtype) {
  SetType(graph()->add_value_info(), name, dims, dtype);
  return *this;
}

TestModel& TestModel::Initializer(const std::string& name, const HostTensor& value) {
  *graph()->add_initializer() = MakeTensorProto(value, name);
  return *this;
}

TestModel& TestModel::Ints(const std::string& name, const std::vector<int64_t>& values) {
  HostTensor tensor(DType::kI64, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) tensor.SetInt(static_cast<int64_t>(i), values[i]);
  return Initializer(name, tensor);
}

TestModel& TestModel::Reference(const std::string& name, const Dims& dims, DType dtype) {
  onnx::TensorProto* tensor = graph()->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(DTypeToOnnx(dtype));
  for (int64_t d : dims) tensor->add_dims(d);
  ReferToClient(tensor);
  return *this;
}

TestModel& TestModel::Node(const std::string& op, const std::vector<std::string>& inputs,
                           const std::vector<std::string>& outputs, const std::string& name) {
  last_ = function_ != nullptr ? function_->add_node() : graph()->add_node();
  last_->set_op_type(op);
  last_->set_name(name);
  for (const std::string& input : inputs) last_->add_input(input);
  for (const std::string& output : outputs) last_->add_output(output);
  return *this;
}

TestModel& TestModel::Attr(const std::string& name, int64_t value) {
  AddAttribute(last_, name, onnx::AttributeProto::INT)->set_i(value);
  return *this;
}

TestModel& TestModel::Attr(const std::string& name, const std::vector<int64_t>& values) {
  auto* a = AddAttribute(last_, name, onnx::AttributeProto::INTS);
  for (int64_t v : values) a->add_ints(v);
  return *this;
}

TestModel& TestModel::AttrFloat(const std::string& name, float value) {
  AddAttribute(last_, name, onnx::AttributeProto::FLOAT)->set_f(value);
  return *this;
}

TestModel& TestModel::AttrString(const std::string& name, const std::string& value) {
  AddAttribute(last_, name, onnx::AttributeProto::STRING)->set_s(value);
  return *this;
}

TestModel& TestModel::AttrTensor(const std::string& name, const HostTensor& value) {
  *AddAttribute(last_, name, onnx::AttributeProto::TENSOR)->mutable_t() =
      MakeTensorProto(value, "");
  return *this;
}

TestModel& TestModel::AttrGraph(const std::string& name, const TestModel& body) {
  onnx::AttributeProto* attribute = last_->add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::GRAPH);
  *attribute->mutable_g() = body.proto_.graph();
  return *this;
}

TestModel& TestModel::AttrRef(const std::string& name, const std::string& referred) {
  AddAttribute(last_, name, onnx::AttributeProto::INT)->set_ref_attr_name(referred);
  return *this;
}

TestModel& TestModel::Domain(const std::string& domain) {
  last_->set_domain(domain);
  return *this;
}

TestModel& TestModel::Function(const std::string& domain, const std::string& name,
                               const std::vector<std::string>& inputs,
                               const std::vector<std::string>& outputs,
                               const std::vector<std::string>& attributes, int opset) {
  function_ = proto_.add_functions();
  function_->set_domain(domain);
  function_->set_name(name);
  for (const std::string& input : inputs) function_->add_input(input);
  for (const std::string& output : outputs) function_->add_output(output);
  for (const std::string& attribute : attributes) function_->add_attribute(attribute);
  function_->add_opset_import()->set_version(opset);
  return *this;
}

TestModel& TestModel::End() {
  function_ = nullptr;
  return *this;
}

TestModel LinearReluModel(int64_t rows, const std::string& prefix) {
  TestModel m;
  m.Input(prefix + "x", {rows, 64})
      .Reference(prefix + "w", {64, 32})
      .Reference(prefix + "b", {32})
      .Node("MatMul", {prefix + "x", prefix + "w"}, {prefix + "p"}, prefix + "product")
      .Node("Add", {prefix + "p", prefix + "b"}, {prefix + "s"}, prefix + "sum")
      .Node("Relu", {prefix + "s"}, {prefix + "y"}, prefix + "relu")
      .Output(prefix + "y");
  return m;
}

}  // namespace fusion
