#include "tests/models/onnx_builder.h"

#include <cmath>

#include "core/onnx/tensor_proto.h"
#include "core/tensor/onnx_dtype.h"

namespace fusion {
namespace {

constexpr int kOpset = 17;
constexpr int kIrVersion = 8;

}  // namespace

OnnxBuilder::OnnxBuilder(std::string name, uint64_t seed, bool dynamic)
    : graph_(model_.mutable_graph()), seed_(seed), dynamic_(dynamic) {
  model_.set_ir_version(kIrVersion);
  model_.set_producer_name("fusion-modelgen");
  model_.add_opset_import()->set_version(kOpset);
  graph_->set_name(std::move(name));
}

std::string OnnxBuilder::Path(std::string_view leaf, char separator) const {
  std::string out;
  for (const std::string& module : modules_) {
    if (separator == '/') out += '/';
    out += module;
    if (separator == '.') out += '.';
  }
  if (separator == '/') out += '/';
  out += leaf;
  return out;
}

std::string OnnxBuilder::Unique(std::string name) {
  int count = taken_[name]++;
  return count == 0 ? name : Unique(StrCat(name, "_", count));
}

void OnnxBuilder::Declare(onnx::ValueInfoProto* info, const std::string& name, DType dtype,
                          const std::vector<NamedDim>& dims) const {
  info->set_name(name);
  onnx::TypeProto::Tensor* type = info->mutable_type()->mutable_tensor_type();
  type->set_elem_type(DTypeToOnnx(dtype));
  onnx::TensorShapeProto* shape = type->mutable_shape();
  for (const NamedDim& dim : dims) {
    if (dynamic_ && !dim.symbol.empty()) {
      shape->add_dim()->set_dim_param(dim.symbol);
    } else {
      shape->add_dim()->set_dim_value(dim.value);
    }
  }
}

std::string OnnxBuilder::Input(const std::string& name, DType dtype,
                               const std::vector<NamedDim>& dims, InputFill fill, int64_t past) {
  Declare(graph_->add_input(), name, dtype, dims);
  InputSpec spec{.name = name, .dtype = dtype, .dims = {}, .fill = fill, .past = past};
  for (const NamedDim& dim : dims) spec.dims.push_back(dim.value);
  inputs_.push_back(std::move(spec));
  return Unique(name);
}

void OnnxBuilder::Output(const std::string& tensor, DType dtype, const std::vector<NamedDim>& dims,
                         const std::string& name) {
  if (!name.empty()) {
    onnx::NodeProto* node = graph_->add_node();
    node->set_op_type("Identity");
    node->set_name(Unique(Path("Identity", '/')));
    node->add_input(tensor);
    node->add_output(name);
  }
  Declare(graph_->add_output(), name.empty() ? tensor : name, dtype, dims);
}

std::string OnnxBuilder::AddFloats(const std::string& name, const Dims& dims, float scale,
                                   float mean) {
  auto [known, is_new] = weight_names_.try_emplace(Path(name, '.'));
  if (!is_new) {
    Dims first = weight_dims_.at(known->first);
    FUSION_CHECK(first == dims, StrCat("weight ", known->first, " is ", DimsToString(first),
                                       ", wanted again as ", DimsToString(dims)));
    return known->second;
  }
  weight_dims_[known->first] = dims;
  onnx::TensorProto* tensor = graph_->add_initializer();
  tensor->set_name(Unique(known->first));
  tensor->set_data_type(onnx::TensorProto::FLOAT);
  for (int64_t d : dims) tensor->add_dims(d);
  tensor->mutable_raw_data()->resize(static_cast<size_t>(NumElements(dims)) * sizeof(float));
  Random random(seed_, weights_++);
  auto* values = reinterpret_cast<float*>(tensor->mutable_raw_data()->data());
  for (int64_t i = 0; i < NumElements(dims); ++i) values[i] = random.Normal() * scale + mean;
  return known->second = tensor->name();
}

std::string OnnxBuilder::Weight(const std::string& name, const Dims& dims, float scale) {
  if (scale == 0) scale = 1.0f / std::sqrt(static_cast<float>(dims[0]));
  return AddFloats(name, dims, scale, 0);
}

std::string OnnxBuilder::Integers(const std::string& name, const Dims& dims, int axis,
                                  float scale) {
  HostTensor q(DType::kI8, dims);
  Random chance(seed_, weights_++);
  for (int64_t i = 0; i < q.elements(); ++i) {
    q.SetInt(i, static_cast<int64_t>(chance.Next() % 255) - 127);
  }
  const int64_t extent = dims[static_cast<size_t>(axis)];
  HostTensor scales(DType::kF32, {extent});
  for (int64_t i = 0; i < extent; ++i) {
    // The integers spread by 73.
    scales.SetDouble(i, scale / 73 * (1 + 0.25f * static_cast<float>(i % 5)));
  }
  return Op(
      "DequantizeLinear",
      {Initializer(StrCat(name, "_quantized"), q), Initializer(StrCat(name, "_scale"), scales)},
      {Int("axis", axis)});
}

std::string OnnxBuilder::Rounded(const std::string& x) {
  auto [known, is_new] = rounded_.try_emplace(x);
  if (is_new) {
    // Four standard deviations of what a normalisation gives.
    const std::string scale = F32(1.0f / 32);
    const std::string zero = Shared(HostTensor::FromValues<uint8_t>(DType::kU8, {}, {128}));
    known->second = Op("DequantizeLinear", {Op("QuantizeLinear", {x, scale, zero}), scale, zero});
  }
  return known->second;
}

std::string OnnxBuilder::Matrix(const std::string& name, int64_t rows, int64_t columns) {
  if (!int8_) return Weight(name, {rows, columns});
  // As large as the weights of Weight.
  return Integers(name, {rows, columns}, 1, 1 / std::sqrt(static_cast<float>(rows)));
}

std::string OnnxBuilder::Product(const std::string& x, const std::string& name, int64_t rows,
                                 int64_t columns) {
  const std::string rounded = qdq_ ? Rounded(x) : x;
  return Op("MatMul", {rounded, Matrix(name, rows, columns)});
}

std::string OnnxBuilder::Convolution(const std::string& x, const std::string& name,
                                     const Dims& dims, float scale,
                                     const std::vector<onnx::AttributeProto>& attributes) {
  auto scope = Enter(name);
  const std::string image = qdq_ ? Rounded(x) : x;
  const std::string weight =
      qdq_ ? Integers("weight", dims, 0, scale) : Weight("weight", dims, scale);
  return Op("Conv", {image, weight, Weight("bias", {dims[0]}, 0.02f)}, attributes);
}

std::string OnnxBuilder::Gain(const std::string& name, int64_t extent) {
  return AddFloats(name, {extent}, 0.02f, 1);
}

std::string OnnxBuilder::Initializer(const std::string& name, const HostTensor& value) {
  *graph_->add_initializer() = MakeTensorProto(value, Unique(Path(name, '.')));
  return graph_->initializer(graph_->initializer_size() - 1).name();
}

std::string OnnxBuilder::Shared(const HostTensor& value) {
  std::string key = StrCat(DTypeName(value.dtype()), DimsToString(value.dims()), value.byte_view());
  auto known = shared_.find(key);
  if (known != shared_.end()) return known->second;
  std::string name = Unique(StrCat("onnx::Constant_", shared_.size()));
  *graph_->add_initializer() = MakeTensorProto(value, name);
  shared_.emplace(std::move(key), name);
  return name;
}

std::string OnnxBuilder::F32(float value) {
  return Shared(HostTensor::FromValues<float>(DType::kF32, {}, {value}));
}

std::string OnnxBuilder::I64(int64_t value) {
  return Shared(HostTensor::FromValues<int64_t>(DType::kI64, {}, {value}));
}

std::string OnnxBuilder::I64(const std::vector<int64_t>& values) {
  HostTensor tensor(DType::kI64, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) tensor.SetInt(static_cast<int64_t>(i), values[i]);
  return Shared(tensor);
}

std::vector<std::string> OnnxBuilder::MultiOp(const std::string& type,
                                              const std::vector<std::string>& inputs,
                                              const Attributes& attributes, int outputs) {
  onnx::NodeProto* node = graph_->add_node();
  node->set_op_type(type);
  node->set_name(Unique(Path(type, '/')));
  for (const std::string& input : inputs) node->add_input(input);
  for (const onnx::AttributeProto& attribute : attributes) *node->add_attribute() = attribute;
  for (int i = 0; i < outputs; ++i) {
    node->add_output(Unique(StrCat(node->name(), ":", i)));
  }
  return {node->output().begin(), node->output().end()};
}

std::string OnnxBuilder::Op(const std::string& type, const std::vector<std::string>& inputs,
                            const Attributes& attributes) {
  return MultiOp(type, inputs, attributes, 1)[0];
}

onnx::AttributeProto OnnxBuilder::Int(const std::string& name, int64_t value) {
  onnx::AttributeProto out;
  out.set_name(name);
  out.set_type(onnx::AttributeProto::INT);
  out.set_i(value);
  return out;
}

onnx::AttributeProto OnnxBuilder::Float(const std::string& name, float value) {
  onnx::AttributeProto out;
  out.set_name(name);
  out.set_type(onnx::AttributeProto::FLOAT);
  out.set_f(value);
  return out;
}

onnx::AttributeProto OnnxBuilder::Ints(const std::string& name,
                                       const std::vector<int64_t>& values) {
  onnx::AttributeProto out;
  out.set_name(name);
  out.set_type(onnx::AttributeProto::INTS);
  for (int64_t v : values) out.add_ints(v);
  return out;
}

onnx::AttributeProto OnnxBuilder::Body(const std::string& name, OnnxBuilder&& body) {
  onnx::AttributeProto attribute;
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::GRAPH);
  *attribute.mutable_g() = std::move(*body.graph_);
  return attribute;
}

onnx::ModelProto OnnxBuilder::Finish() && { return std::move(model_); }

}  // namespace fusion
