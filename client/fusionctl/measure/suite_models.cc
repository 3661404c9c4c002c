#include "client/fusionctl/measure/suite_models.h"

#include <cmath>
#include <limits>
#include <utility>

#include "core/base/text/text.h"
#include "core/graph/evaluate/test_values.h"
#include "core/onnx/tensor_proto.h"

namespace fusion {
namespace {

constexpr int64_t kOpset = 17;
constexpr int64_t kIrVersion = 8;

/// Nodes one after the other, as an exporter writes them.
class SuiteGraph {
 public:
  explicit SuiteGraph(const std::string& name) {
    model_.set_ir_version(kIrVersion);
    model_.set_producer_name("fusionctl bench --suite");
    model_.add_opset_import()->set_version(kOpset);
    model_.mutable_graph()->set_name(name);
  }

  std::string Input(const std::string& name, const Dims& dims) {
    Declare(model_.mutable_graph()->add_input(), name, dims);
    return name;
  }
  void Output(const std::string& name, const Dims& dims) {
    Declare(model_.mutable_graph()->add_output(), name, dims);
  }

  /// Random values whose sums over the first extent stay near 1.
  std::string Weight(const Dims& dims) {
    HostTensor value = RandomTensor({DType::kF32, Shape(dims)}, /*seed=*/++weights_);
    const double scale = 1 / std::sqrt(static_cast<double>(dims[0]));
    for (int64_t i = 0; i < value.elements(); ++i) value.SetDouble(i, value.GetDouble(i) * scale);
    return Constant(value);
  }
  std::string Number(float value) {
    HostTensor out(DType::kF32, {});
    out.SetDouble(0, static_cast<double>(value));
    return Constant(out);
  }
  std::string Integers(const std::vector<int64_t>& values, bool scalar = false) {
    HostTensor out(DType::kI64, scalar ? Dims{} : Dims{static_cast<int64_t>(values.size())});
    for (size_t i = 0; i < values.size(); ++i) out.SetInt(static_cast<int64_t>(i), values[i]);
    return Constant(out);
  }

  using Ints = std::vector<std::pair<std::string, std::vector<int64_t>>>;
  /// A node with one output. `ints`: attributes; perm and axes are lists.
  std::string Op(const std::string& type, const std::vector<std::string>& inputs,
                 const Ints& ints = {}) {
    onnx::NodeProto* node = model_.mutable_graph()->add_node();
    node->set_op_type(type);
    node->set_name(StrCat(type, "_", model_.graph().node_size()));
    for (const std::string& input : inputs) node->add_input(input);
    for (const auto& [name, values] : ints) {
      onnx::AttributeProto* attribute = node->add_attribute();
      attribute->set_name(name);
      const bool list = name == "perm" || name == "axes";
      attribute->set_type(list ? onnx::AttributeProto::INTS : onnx::AttributeProto::INT);
      if (!list) attribute->set_i(values[0]);
      for (size_t i = 0; list && i < values.size(); ++i) attribute->add_ints(values[i]);
    }
    const std::string out = StrCat(node->name(), "_out");
    node->add_output(out);
    return out;
  }

  onnx::ModelProto Take() { return std::move(model_); }

 private:
  static void Declare(onnx::ValueInfoProto* info, const std::string& name, const Dims& dims) {
    info->set_name(name);
    onnx::TypeProto::Tensor* type = info->mutable_type()->mutable_tensor_type();
    type->set_elem_type(onnx::TensorProto::FLOAT);
    for (int64_t extent : dims) type->mutable_shape()->add_dim()->set_dim_value(extent);
  }
  std::string Constant(const HostTensor& value) {
    const std::string name = StrCat("constant_", model_.graph().initializer_size());
    *model_.mutable_graph()->add_initializer() = MakeTensorProto(value, name);
    return name;
  }

  onnx::ModelProto model_;
  uint64_t weights_ = 0;
};

// Scaled scores -> weights -> values; `scores` may be masked in between.
std::string Scores(SuiteGraph& g, const std::string& q, const std::string& k, int64_t head_size) {
  const std::string keys = g.Op("Transpose", {k}, {{"perm", {0, 1, 3, 2}}});
  return g.Op("Div",
              {g.Op("MatMul", {q, keys}), g.Number(std::sqrt(static_cast<float>(head_size)))});
}

onnx::ModelProto CausalAttention() {
  constexpr int64_t kHeads = 8;
  constexpr int64_t kLength = 1024;
  constexpr int64_t kHeadSize = 64;
  const Dims dims = {1, kHeads, kLength, kHeadSize};
  SuiteGraph g("causal_attention");
  const std::string q = g.Input("q", dims);
  const std::string k = g.Input("k", dims);
  const std::string v = g.Input("v", dims);
  const std::string places =
      g.Op("Range", {g.Integers({0}, true), g.Integers({kLength}, true), g.Integers({1}, true)});
  const std::string seen = g.Op("LessOrEqual", {g.Op("Unsqueeze", {places, g.Integers({0})}),
                                                g.Op("Unsqueeze", {places, g.Integers({1})})});
  const std::string masked = g.Op(
      "Where", {seen, Scores(g, q, k, kHeadSize), g.Number(std::numeric_limits<float>::lowest())});
  g.Output(g.Op("MatMul", {g.Op("Softmax", {masked}, {{"axis", {-1}}}), v}), dims);
  return g.Take();
}

onnx::ModelProto MaskedSoftmax() {
  const Dims dims = {4, 12, 256, 256};
  SuiteGraph g("masked_softmax");
  const std::string scores = g.Input("scores", dims);
  const std::string mask = g.Input("mask", {4, 1, 1, 256});
  const std::string scaled = g.Op("Div", {scores, g.Number(8)});
  g.Output(g.Op("Softmax", {g.Op("Add", {scaled, mask})}, {{"axis", {-1}}}), dims);
  return g.Take();
}

// x + bias + residual, normalised along the last dim.
std::string Normalised(SuiteGraph& g, const std::string& x, const std::string& residual,
                       int64_t hidden) {
  const std::string sum = g.Op("Add", {g.Op("Add", {x, g.Weight({hidden})}), residual});
  return g.Op("LayerNormalization", {sum, g.Weight({hidden}), g.Weight({hidden})},
              {{"axis", {-1}}});
}

onnx::ModelProto BiasResidualLayerNorm() {
  const Dims dims = {2048, 768};
  SuiteGraph g("bias_residual_layer_norm");
  const std::string x = g.Input("x", dims);
  const std::string residual = g.Input("residual", dims);
  g.Output(Normalised(g, x, residual, dims[1]), dims);
  return g.Take();
}

onnx::ModelProto ChainOfTen() {
  const Dims dims = {1024, 1024};
  SuiteGraph g("chain_of_ten");
  const std::string x = g.Input("x", dims);
  const std::string y = g.Input("y", dims);
  std::string out = g.Op("Add", {x, y});
  out = g.Op("Mul", {out, g.Number(0.5F)});
  out = g.Op("Relu", {out});
  out = g.Op("Sub", {out, y});
  out = g.Op("Abs", {out});
  out = g.Op("Add", {out, g.Number(1)});
  out = g.Op("Sqrt", {out});
  out = g.Op("Mul", {out, x});
  out = g.Op("Max", {out, y});
  g.Output(g.Op("Neg", {out}), dims);
  return g.Take();
}

// [rows, heads * size] -> [1, heads, rows, size]
std::string Heads(SuiteGraph& g, const std::string& x, int64_t rows, int64_t heads, int64_t size) {
  const std::string split = g.Op("Reshape", {x, g.Integers({1, rows, heads, size})});
  return g.Op("Transpose", {split}, {{"perm", {0, 2, 1, 3}}});
}

std::string Joined(SuiteGraph& g, const std::string& x, int64_t rows, int64_t hidden) {
  const std::string rows_first = g.Op("Transpose", {x}, {{"perm", {0, 2, 1, 3}}});
  return g.Op("Reshape", {rows_first, g.Integers({rows, hidden})});
}

onnx::ModelProto EncoderLayer() {
  constexpr int64_t kRows = 128;
  constexpr int64_t kHidden = 768;
  constexpr int64_t kHeads = 12;
  constexpr int64_t kSize = kHidden / kHeads;
  constexpr int64_t kInner = 3072;
  const Dims dims = {kRows, kHidden};
  SuiteGraph g("bert_layer");
  const std::string x = g.Input("hidden_states", dims);
  const auto linear = [&g](const std::string& from, int64_t in, int64_t out) {
    return g.Op("Add", {g.Op("MatMul", {from, g.Weight({in, out})}), g.Weight({out})});
  };
  std::vector<std::string> heads;
  for (int i = 0; i < 3; ++i) {
    heads.push_back(Heads(g, linear(x, kHidden, kHidden), kRows, kHeads, kSize));
  }
  const std::string weights =
      g.Op("Softmax", {Scores(g, heads[0], heads[1], kSize)}, {{"axis", {-1}}});
  const std::string seen = Joined(g, g.Op("MatMul", {weights, heads[2]}), kRows, kHidden);
  const std::string attention =
      Normalised(g, g.Op("MatMul", {seen, g.Weight({kHidden, kHidden})}), x, kHidden);
  const std::string inner = linear(attention, kHidden, kInner);
  const std::string erf = g.Op("Erf", {g.Op("Div", {inner, g.Number(std::sqrt(2.0F))})});
  const std::string half = g.Op("Mul", {inner, g.Op("Add", {erf, g.Number(1)})});
  const std::string gelu = g.Op("Mul", {half, g.Number(0.5F)});
  g.Output(Normalised(g, g.Op("MatMul", {gelu, g.Weight({kInner, kHidden})}), attention, kHidden),
           dims);
  return g.Take();
}

std::string RmsNorm(SuiteGraph& g, const std::string& x, int64_t hidden) {
  const std::string mean = g.Op("ReduceMean", {g.Op("Mul", {x, x})}, {{"axes", {-1}}});
  const std::string root = g.Op("Sqrt", {g.Op("Add", {mean, g.Number(1e-5F)})});
  return g.Op("Mul", {g.Op("Div", {x, root}), g.Weight({hidden})});
}

onnx::ModelProto DecoderStep() {
  constexpr int64_t kPast = 256;
  constexpr int64_t kHidden = 512;
  constexpr int64_t kHeads = 8;
  constexpr int64_t kSize = kHidden / kHeads;
  constexpr int64_t kInner = 1408;
  SuiteGraph g("llama_step");
  const std::string x = g.Input("hidden_states", {1, kHidden});
  const std::string cos = g.Input("cos", {1, 1, 1, kSize});
  const std::string sin = g.Input("sin", {1, 1, 1, kSize});
  const Dims past = {1, kHeads, kPast, kSize};
  const std::string past_keys = g.Input("past_key", past);
  const std::string past_values = g.Input("past_value", past);
  const std::string normal = RmsNorm(g, x, kHidden);
  const auto projected = [&](const std::string& from) {
    return Heads(g, g.Op("MatMul", {from, g.Weight({kHidden, kHidden})}), 1, kHeads, kSize);
  };
  // x * cos + (-x2, x1) * sin
  const auto turned = [&](const std::string& from) {
    const auto part = [&](int64_t begin, int64_t end) {
      return g.Op("Slice", {from, g.Integers({begin}), g.Integers({end}), g.Integers({3})});
    };
    const std::string across = g.Op(
        "Concat", {g.Op("Neg", {part(kSize / 2, kSize)}), part(0, kSize / 2)}, {{"axis", {3}}});
    return g.Op("Add", {g.Op("Mul", {from, cos}), g.Op("Mul", {across, sin})});
  };
  const std::string q = turned(projected(normal));
  const std::string k = g.Op("Concat", {past_keys, turned(projected(normal))}, {{"axis", {2}}});
  const std::string v = g.Op("Concat", {past_values, projected(normal)}, {{"axis", {2}}});
  const std::string weights = g.Op("Softmax", {Scores(g, q, k, kSize)}, {{"axis", {-1}}});
  const std::string seen = Joined(g, g.Op("MatMul", {weights, v}), 1, kHidden);
  const std::string attention =
      g.Op("Add", {g.Op("MatMul", {seen, g.Weight({kHidden, kHidden})}), x});
  const std::string second = RmsNorm(g, attention, kHidden);
  const std::string gate = g.Op("MatMul", {second, g.Weight({kHidden, kInner})});
  const std::string up = g.Op("MatMul", {second, g.Weight({kHidden, kInner})});
  const std::string gated = g.Op("Mul", {g.Op("Mul", {gate, g.Op("Sigmoid", {gate})}), up});
  g.Output(g.Op("Add", {g.Op("MatMul", {gated, g.Weight({kInner, kHidden})}), attention}),
           {1, kHidden});
  const Dims grown = {1, kHeads, kPast + 1, kSize};
  g.Output(k, grown);
  g.Output(v, grown);
  return g.Take();
}

}  // namespace

std::vector<SuiteModel> SuiteModels() {
  return {{"causal attention, 8 heads, 1024 positions", CausalAttention()},
          {"masked softmax of 4 x 12 x 256 x 256", MaskedSoftmax()},
          {"bias, residual, LayerNorm of 2048 x 768", BiasResidualLayerNorm()},
          {"chain of ten operators on 1024 x 1024", ChainOfTen()},
          {"BERT layer, 128 tokens, --numerics fast", EncoderLayer(), Numerics::kFast},
          {"Llama layer, one token behind 256", DecoderStep()}};
}

}  // namespace fusion
