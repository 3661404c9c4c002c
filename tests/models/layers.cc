#include "tests/models/layers.h"

#include <cmath>
#include <limits>

namespace fusion {
namespace {

// Extent `axis` of x as a tensor [1].
std::string ExtentOf(OnnxBuilder& b, const std::string& x, int64_t axis) {
  std::string extent =
      b.Op("Gather", {b.Op("Shape", {x}), b.I64(axis)}, {OnnxBuilder::Int("axis", 0)});
  return b.Op("Unsqueeze", {extent, b.I64(std::vector<int64_t>{0})});
}

std::string Join(OnnxBuilder& b, const std::vector<std::string>& extents) {
  return b.Op("Concat", extents, {OnnxBuilder::Int("axis", 0)});
}

std::string One(OnnxBuilder& b, int64_t value) { return b.I64(std::vector<int64_t>{value}); }

}  // namespace

std::string Linear(OnnxBuilder& b, const std::string& module, const std::string& x, int64_t in,
                   int64_t out, bool bias) {
  auto scope = b.Enter(module);
  std::string y = b.Product(x, "weight", in, out);
  return bias ? b.Op("Add", {b.Weight("bias", {out}, 0.02f), y}) : y;
}

std::string GemmLinear(OnnxBuilder& b, const std::string& module, const std::string& x, int64_t in,
                       int64_t out) {
  auto scope = b.Enter(module);
  return b.Op("Gemm", {x, b.Weight("weight", {in, out}), b.Weight("bias", {out}, 0.02f)});
}

std::string LayerNorm(OnnxBuilder& b, const std::string& module, const std::string& x,
                      int64_t extent, float epsilon) {
  auto scope = b.Enter(module);
  OnnxBuilder::Attributes last = {OnnxBuilder::Ints("axes", {-1})};
  std::string mean = b.Op("ReduceMean", {x}, last);
  std::string centred = b.Op("Sub", {x, mean});
  std::string variance = b.Op("ReduceMean", {b.Op("Pow", {centred, b.F32(2)})}, last);
  std::string deviation = b.Op("Sqrt", {b.Op("Add", {variance, b.F32(epsilon)})});
  std::string y = b.Op("Div", {centred, deviation});
  y = b.Op("Mul", {y, b.Gain("weight", extent)});
  return b.Op("Add", {y, b.Weight("bias", {extent}, 0.02f)});
}

std::string RmsNorm(OnnxBuilder& b, const std::string& module, const std::string& x,
                    int64_t extent) {
  auto scope = b.Enter(module);
  std::string square =
      b.Op("ReduceMean", {b.Op("Pow", {x, b.F32(2)})}, {OnnxBuilder::Ints("axes", {-1})});
  std::string root = b.Op("Sqrt", {b.Op("Add", {square, b.F32(1e-6f)})});
  std::string y = b.Op("Mul", {x, b.Op("Div", {b.F32(1), root})});
  return b.Op("Mul", {b.Gain("weight", extent), y});
}

std::string Gelu(OnnxBuilder& b, const std::string& x) {
  std::string erf = b.Op("Erf", {b.Op("Div", {x, b.F32(std::sqrt(2.0f))})});
  return b.Op("Mul", {b.Op("Mul", {x, b.Op("Add", {erf, b.F32(1)})}), b.F32(0.5f)});
}

std::string GeluTanh(OnnxBuilder& b, const std::string& x) {
  std::string cube = b.Op("Mul", {b.Op("Pow", {x, b.F32(3)}), b.F32(0.044715f)});
  std::string scaled = b.Op("Mul", {b.Op("Add", {x, cube}), b.F32(0.7978845608f)});
  std::string gate = b.Op("Add", {b.Op("Tanh", {scaled}), b.F32(1)});
  return b.Op("Mul", {b.Op("Mul", {x, b.F32(0.5f)}), gate});
}

std::string Silu(OnnxBuilder& b, const std::string& x) {
  return b.Op("Mul", {x, b.Op("Sigmoid", {x})});
}

std::string SplitHeads(OnnxBuilder& b, const std::string& x, const std::string& like,
                       const AttentionShape& s, bool transposed) {
  std::string shape = b.dynamic() ? Join(b, {ExtentOf(b, like, 0), ExtentOf(b, like, 1),
                                             One(b, s.heads), One(b, s.head_size)})
                                  : b.I64({s.batch, s.seq, s.heads, s.head_size});
  std::vector<int64_t> perm = {0, 2, 1, 3};
  if (transposed) perm = {0, 2, 3, 1};
  return b.Op("Transpose", {b.Op("Reshape", {x, shape})}, {OnnxBuilder::Ints("perm", perm)});
}

std::string MergeHeads(OnnxBuilder& b, const std::string& x, const std::string& like,
                       const AttentionShape& s) {
  int64_t hidden = s.heads * s.head_size;
  std::string rows = b.Op("Transpose", {x}, {OnnxBuilder::Ints("perm", {0, 2, 1, 3})});
  std::string shape = b.dynamic()
                          ? Join(b, {ExtentOf(b, like, 0), ExtentOf(b, like, 1), One(b, hidden)})
                          : b.I64({s.batch, s.seq, hidden});
  return b.Op("Reshape", {rows, shape});
}

std::string Attention(OnnxBuilder& b, const std::string& q, const std::string& k_transposed,
                      const std::string& v, int64_t head_size, const std::string& mask) {
  std::string scores = b.Op("MatMul", {q, k_transposed});
  scores = b.Op("Div", {scores, b.F32(std::sqrt(static_cast<float>(head_size)))});
  if (!mask.empty()) scores = b.Op("Add", {scores, mask});
  return b.Op("MatMul", {b.Op("Softmax", {scores}, {OnnxBuilder::Int("axis", -1)}), v});
}

std::string ExtendedMask(OnnxBuilder& b, const std::string& mask) {
  std::string x = b.Op("Unsqueeze", {mask, One(b, 1)});
  x = b.Op("Unsqueeze", {x, One(b, 2)});
  x = b.Op("Cast", {x}, {OnnxBuilder::Int("to", onnx::TensorProto::FLOAT)});
  return b.Op("Mul", {b.Op("Sub", {b.F32(1), x}), b.F32(-10000)});
}

Rotary RotaryTables(OnnxBuilder& b, const std::string& position_ids, int64_t head_size) {
  auto scope = b.Enter("rotary_emb");
  HostTensor frequencies(DType::kF32, {1, head_size / 2, 1});
  for (int64_t i = 0; i < head_size / 2; ++i) {
    double exponent = 2.0 * static_cast<double>(i) / static_cast<double>(head_size);
    frequencies.SetDouble(i, std::pow(10000.0, -exponent));
  }
  std::string positions = b.Op("Unsqueeze", {position_ids, One(b, 1)});
  positions = b.Op("Cast", {positions}, {OnnxBuilder::Int("to", onnx::TensorProto::FLOAT)});
  std::string angles = b.Op("MatMul", {b.Initializer("inv_freq", frequencies), positions});
  angles = b.Op("Transpose", {angles}, {OnnxBuilder::Ints("perm", {0, 2, 1})});
  angles = b.Op("Concat", {angles, angles}, {OnnxBuilder::Int("axis", -1)});
  std::string cos = b.Op("Unsqueeze", {b.Op("Cos", {angles}), One(b, 1)});
  return {cos, b.Op("Unsqueeze", {b.Op("Sin", {angles}), One(b, 1)})};
}

std::string ApplyRotary(OnnxBuilder& b, const std::string& x, const Rotary& rotary,
                        int64_t head_size) {
  int64_t half = head_size / 2;
  int64_t end = std::numeric_limits<int64_t>::max();
  std::string low = b.Op("Slice", {x, One(b, 0), One(b, half), One(b, 3), One(b, 1)});
  std::string high = b.Op("Slice", {x, One(b, half), One(b, end), One(b, 3), One(b, 1)});
  std::string rotated = b.Op("Concat", {b.Op("Neg", {high}), low}, {OnnxBuilder::Int("axis", -1)});
  return b.Op("Add", {b.Op("Mul", {x, rotary.cos}), b.Op("Mul", {rotated, rotary.sin})});
}

std::string RepeatKv(OnnxBuilder& b, const std::string& x, const AttentionShape& kv,
                     int64_t groups) {
  std::string wide = b.Op("Unsqueeze", {x, One(b, 2)});
  if (b.dynamic()) {
    std::string shape = Join(b, {ExtentOf(b, x, 0), One(b, kv.heads), One(b, groups),
                                 ExtentOf(b, x, 2), One(b, kv.head_size)});
    wide = b.Op("Expand", {wide, shape});
    shape = Join(
        b, {ExtentOf(b, x, 0), One(b, kv.heads * groups), ExtentOf(b, x, 2), One(b, kv.head_size)});
    return b.Op("Reshape", {wide, shape});
  }
  wide = b.Op("Expand", {wide, b.I64({kv.batch, kv.heads, groups, kv.seq, kv.head_size})});
  return b.Op("Reshape", {wide, b.I64({kv.batch, kv.heads * groups, kv.seq, kv.head_size})});
}

}  // namespace fusion
