#include <cmath>
#include <limits>

#include "tests/models/layers.h"
#include "tests/models/models.h"

namespace fusion {
namespace {

std::vector<NamedDim> MatrixDims(const ModelParams& p) { return {{p.rows}, {p.cols}}; }

enum class Mask : uint8_t { kNone, kInput, kCausal };

// scores where the key is not behind the query, else the least float; positions are compared in the
// graph.
std::string CausalScores(OnnxBuilder& b, const std::string& scores, const ModelParams& p) {
  std::string keys = b.Op("Range", {b.I64(0), b.I64(p.past + p.seq), b.I64(1)});
  std::string queries = b.Op("Range", {b.I64(p.past), b.I64(p.past + p.seq), b.I64(1)});
  std::string seen = b.Op("LessOrEqual", {b.Op("Unsqueeze", {keys, b.I64({0})}),
                                          b.Op("Unsqueeze", {queries, b.I64({1})})});
  return b.Op("Where", {seen, scores, b.F32(std::numeric_limits<float>::lowest())});
}

void AttentionAlone(OnnxBuilder& b, const ModelParams& p, Mask how) {
  int64_t head_size = p.hidden / p.heads;
  int64_t keys = p.past + p.seq;
  std::vector<NamedDim> dims = {{p.batch}, {p.heads}, {p.seq}, {head_size}};
  std::vector<NamedDim> key_dims = {{p.batch}, {p.heads}, {keys}, {head_size}};
  std::string q = b.Input("q", DType::kF32, dims);
  std::string k = b.Input("k", DType::kF32, key_dims);
  std::string v = b.Input("v", DType::kF32, key_dims);
  std::string mask;
  if (how == Mask::kInput) {
    mask = b.Input("mask", DType::kF32, {{p.batch}, {1}, {p.seq}, {keys}}, InputFill::kCausalMask);
  }
  k = b.Op("Transpose", {k}, {OnnxBuilder::Ints("perm", {0, 1, 3, 2})});
  if (how != Mask::kCausal) {
    b.Output(Attention(b, q, k, v, head_size, mask), DType::kF32, dims);
    return;
  }
  std::string scores =
      b.Op("Div", {b.Op("MatMul", {q, k}), b.F32(std::sqrt(static_cast<float>(head_size)))});
  scores = b.Op("Softmax", {CausalScores(b, scores, p)}, {OnnxBuilder::Int("axis", -1)});
  b.Output(b.Op("MatMul", {scores, v}), DType::kF32, dims);
}

void GemmStack(OnnxBuilder& b, const ModelParams& p, const std::string& activation) {
  std::string x = b.Input("x", DType::kF32, MatrixDims(p));
  for (int64_t i = 0; i < p.depth; ++i) {
    x = b.Op(activation, {GemmLinear(b, StrCat("layers.", i), x, p.cols, p.cols)});
  }
  b.Output(x, DType::kF32, MatrixDims(p));
}

}  // namespace

void BuildMha(OnnxBuilder& b, const ModelParams& p) { AttentionAlone(b, p, Mask::kInput); }

void BuildMhaNoMask(OnnxBuilder& b, const ModelParams& p) { AttentionAlone(b, p, Mask::kNone); }

void BuildMhaCausal(OnnxBuilder& b, const ModelParams& p) { AttentionAlone(b, p, Mask::kCausal); }

void BuildMatMul(OnnxBuilder& b, const ModelParams& p) {
  std::string x = b.Input("x", DType::kF32, {{p.rows}, {p.hidden}});
  b.Output(b.Product(x, "weight", p.hidden, p.cols), DType::kF32, MatrixDims(p));
}

void BuildMlp(OnnxBuilder& b, const ModelParams& p) { GemmStack(b, p, "Relu"); }

void BuildMlpTanh(OnnxBuilder& b, const ModelParams& p) { GemmStack(b, p, "Tanh"); }

void BuildAddRelu(OnnxBuilder& b, const ModelParams& p) {
  std::string x = b.Input("x", DType::kF32, MatrixDims(p));
  std::string y = b.Op("MatMul", {x, b.Weight("weight", {p.cols, p.cols})});
  y = b.Op("Add", {y, b.Weight("bias", {p.cols}, 0.02f)});
  b.Output(b.Op("Relu", {y}), DType::kF32, MatrixDims(p));
}

void BuildLayerNorm(OnnxBuilder& b, const ModelParams& p) {
  std::string x = b.Input("x", DType::kF32, MatrixDims(p));
  b.Output(LayerNorm(b, "norm", x, p.cols, 1e-5f), DType::kF32, MatrixDims(p));
}

void BuildRmsNorm(OnnxBuilder& b, const ModelParams& p) {
  std::string x = b.Input("x", DType::kF32, MatrixDims(p));
  b.Output(RmsNorm(b, "norm", x, p.cols), DType::kF32, MatrixDims(p));
}

void BuildSoftmax(OnnxBuilder& b, const ModelParams& p) {
  std::string x = b.Input("x", DType::kF32, MatrixDims(p));
  b.Output(b.Op("Softmax", {x}, {OnnxBuilder::Int("axis", -1)}), DType::kF32, MatrixDims(p));
}

void BuildScaleMaskSoftmax(OnnxBuilder& b, const ModelParams& p) {
  std::string x = b.Input("x", DType::kF32, MatrixDims(p));
  std::string mask = b.Input("mask", DType::kF32, {{1}, {p.cols}});
  x = b.Op("Add", {b.Op("Div", {x, b.F32(8)}), mask});
  b.Output(b.Op("Softmax", {x}, {OnnxBuilder::Int("axis", -1)}), DType::kF32, MatrixDims(p));
}

void BuildAddBiasLayerNorm(OnnxBuilder& b, const ModelParams& p) {
  std::string x = b.Input("x", DType::kF32, MatrixDims(p));
  std::string residual = b.Input("residual", DType::kF32, MatrixDims(p));
  x = b.Op("Add", {b.Op("Add", {b.Weight("bias", {p.cols}, 0.02f), x}), residual});
  b.Output(LayerNorm(b, "norm", x, p.cols, 1e-12f), DType::kF32, MatrixDims(p));
}

void BuildSoftmaxGemm(OnnxBuilder& b, const ModelParams& p) {
  std::string x = b.Input("x", DType::kF32, MatrixDims(p));
  std::string v = b.Input("v", DType::kF32, {{p.cols}, {p.hidden}});
  x = b.Op("Softmax", {x}, {OnnxBuilder::Int("axis", -1)});
  b.Output(b.Op("MatMul", {x, v}), DType::kF32, {{p.rows}, {p.hidden}});
}

void BuildBiasGelu(OnnxBuilder& b, const ModelParams& p) {
  std::string x = b.Input("x", DType::kF32, MatrixDims(p));
  x = b.Op("Add", {x, b.Weight("bias", {p.cols}, 0.02f)});
  b.Output(Gelu(b, x), DType::kF32, MatrixDims(p));
}

void BuildSwiglu(OnnxBuilder& b, const ModelParams& p) {
  std::string x = b.Input("x", DType::kF32, MatrixDims(p));
  std::string gate = Silu(b, Linear(b, "gate_proj", x, p.cols, p.ff, false));
  std::string gated = b.Op("Mul", {gate, Linear(b, "up_proj", x, p.cols, p.ff, false)});
  b.Output(Linear(b, "down_proj", gated, p.ff, p.cols, false), DType::kF32, MatrixDims(p));
}

void BuildElementwise(OnnxBuilder& b, const ModelParams& p) {
  struct Step {
    const char* op;
    bool binary;
  };
  constexpr Step kSteps[] = {{"Add", true}, {"Mul", true},      {"Sub", true}, {"Tanh", false},
                             {"Mul", true}, {"Sigmoid", false}, {"Add", true}, {"Relu", false},
                             {"Max", true}, {"Exp", false}};
  std::string x = b.Input("x", DType::kF32, MatrixDims(p));
  std::string y = b.Input("y", DType::kF32, MatrixDims(p));
  for (int64_t i = 0; i < p.depth; ++i) {
    const Step& step = kSteps[i % static_cast<int64_t>(std::size(kSteps))];
    x = step.binary ? b.Op(step.op, {x, y}) : b.Op(step.op, {x});
  }
  b.Output(x, DType::kF32, MatrixDims(p));
}

}  // namespace fusion
