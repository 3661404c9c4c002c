#include "tests/support/light_models.h"

#include <zlib.h>

#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "core/onnx/tensor_proto.h"
#include "core/tensor/host_tensor.h"

namespace fusion {
namespace {

// The standard normal numbers of numpy.random.RandomState(seed).
class LegacyNormal {
 public:
  explicit LegacyNormal(uint32_t seed) : bits_(seed) {}

  double Next() {
    if (has_next_) {
      has_next_ = false;
      return next_;
    }
    double a = 0;
    double b = 0;
    double square = 0;
    do {
      a = 2 * Uniform() - 1;
      b = 2 * Uniform() - 1;
      square = a * a + b * b;
    } while (square >= 1 || square == 0);
    const double factor = std::sqrt(-2 * std::log(square) / square);
    next_ = factor * a;
    has_next_ = true;
    return factor * b;
  }

 private:
  double Uniform() {
    const double high = static_cast<double>(bits_() >> 5);
    const double low = static_cast<double>(bits_() >> 6);
    return (high * 67108864 + low) / 9007199254740992;
  }

  std::mt19937 bits_;
  bool has_next_ = false;
  double next_ = 0;
};

struct Consumer {
  std::string op;
  int input = -1;
};

// Who reads `name` first, views looked through.
Consumer FirstConsumer(const onnx::GraphProto& graph, std::string name) {
  for (const onnx::NodeProto& node : graph.node()) {
    for (int i = 0; i < node.input_size(); ++i) {
      if (node.input(i) != name) continue;
      if (node.op_type() != "Unsqueeze" && node.op_type() != "Reshape") return {node.op_type(), i};
      name = node.output(0);
      break;
    }
  }
  return {};
}

double Scaled(double r, const Consumer& by, const Dims& dims) {
  if (by.op == "BatchNormalization") {
    if (by.input == 1) return 1 + 0.1 * r;
    return by.input == 4 ? 0.5 + std::abs(r) : 0.1 * r;
  }
  if ((by.op == "Conv" || by.op == "Gemm" || by.op == "MatMul") && dims.size() > 1) {
    double fan_in = 1;
    for (size_t d = 1; d < dims.size(); ++d) fan_in *= static_cast<double>(dims[d]);
    return r * std::sqrt(2 / fan_in);
  }
  return by.op == "Mul" ? 1 + 0.1 * r : 0.05 * r;
}

}  // namespace

void RandomiseLightWeights(onnx::ModelProto* model) {
  onnx::GraphProto* graph = model->mutable_graph();
  std::map<std::string, Dims> shapes;
  for (const onnx::TensorProto& tensor : graph->initializer()) {
    auto value = ReadInlineTensor(tensor, "an initializer");
    if (!value.ok() || value->dtype() != DType::kI64) continue;
    for (int64_t i = 0; i < value->elements(); ++i)
      shapes[tensor.name()].push_back(value->GetInt(i));
  }
  std::vector<onnx::TensorProto> weights;
  google::protobuf::RepeatedPtrField<onnx::NodeProto> kept;
  for (const onnx::NodeProto& node : graph->node()) {
    auto shape = node.op_type() == "ConstantOfShape" ? shapes.find(node.input(0)) : shapes.end();
    if (shape == shapes.end()) {
      *kept.Add() = node;
      continue;
    }
    const std::string& name = node.output(0);
    const auto crc =
        ::crc32(0, reinterpret_cast<const Bytef*>(name.data()), static_cast<uInt>(name.size()));
    LegacyNormal normal(static_cast<uint32_t>(crc) & 0x7fffffff);
    const Consumer by = FirstConsumer(*graph, name);
    HostTensor value(DType::kF32, shape->second);
    for (float& v : value.data<float>()) {
      v = static_cast<float>(Scaled(normal.Next(), by, shape->second));
    }
    weights.push_back(MakeTensorProto(value, name));
  }
  graph->mutable_node()->Swap(&kept);
  for (onnx::TensorProto& weight : weights) *graph->add_initializer() = std::move(weight);
  model->set_ir_version(std::max<int64_t>(model->ir_version(), 4));
}

}  // namespace fusion
