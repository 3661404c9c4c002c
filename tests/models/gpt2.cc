#include <algorithm>
#include <cmath>

#include "tests/models/layers.h"
#include "tests/models/models.h"

namespace fusion {
namespace {

// GPT-2 keeps its linear layers as Conv1D: rows are flattened for one Gemm.
std::string Conv1d(OnnxBuilder& b, const std::string& module, const std::string& x,
                   const ModelParams& p, int64_t in, int64_t out) {
  std::string rows = b.Op("Reshape", {x, b.I64({-1, in})});
  return b.Op("Reshape", {GemmLinear(b, module, rows, in, out), b.I64({p.batch, p.seq, out})});
}

// The causal mask is a buffer of the model, cut to the rows and columns in use, and selects.
std::string MaskScores(OnnxBuilder& b, const std::string& scores, const ModelParams& p) {
  constexpr int64_t kPositions = 1024;
  int64_t total = p.past + p.seq;
  int64_t n = std::max(kPositions, total);
  HostTensor triangle(DType::kBool, {1, 1, n, n});
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= i; ++j) triangle.SetInt(i * n + j, 1);
  }
  auto one = [&b](int64_t v) { return b.I64(std::vector<int64_t>{v}); };
  std::string mask = b.Initializer("bias", triangle);
  mask = b.Op("Slice", {mask, one(p.past), one(total), one(2), one(1)});
  mask = b.Op("Slice", {mask, one(0), one(total), one(3), one(1)});
  return b.Op("Where", {mask, scores, b.F32(-1e9f)});
}

// Behind the cached keys or values, if there are any; the result is an output of its own.
std::string WithPast(OnnxBuilder& b, const std::string& x, const std::string& past,
                     const std::string& present, const ModelParams& p) {
  int64_t head_size = p.hidden / p.heads;
  std::string all = past.empty() ? x : b.Op("Concat", {past, x}, {OnnxBuilder::Int("axis", 2)});
  b.Output(all, DType::kF32, {{p.batch}, {p.heads}, {p.past + p.seq}, {head_size}}, present);
  return all;
}

std::string Block(OnnxBuilder& b, const std::string& x, const std::string& past_key,
                  const std::string& past_value, int64_t layer, const ModelParams& p) {
  constexpr float kEpsilon = 1e-5f;
  AttentionShape shape{p.batch, p.seq, p.heads, p.hidden / p.heads};
  std::string y = LayerNorm(b, "ln_1", x, p.hidden, kEpsilon);
  std::string qkv = Conv1d(b, "attn.c_attn", y, p, p.hidden, 3 * p.hidden);
  std::vector<std::string> parts = b.MultiOp("Split", {qkv, b.I64({p.hidden, p.hidden, p.hidden})},
                                             {OnnxBuilder::Int("axis", 2)}, 3);
  for (std::string& part : parts) part = SplitHeads(b, part, y, shape);
  std::string k = WithPast(b, parts[1], past_key, StrCat("present_key_", layer), p);
  std::string v = WithPast(b, parts[2], past_value, StrCat("present_value_", layer), p);
  k = b.Op("Transpose", {k}, {OnnxBuilder::Ints("perm", {0, 1, 3, 2})});
  std::string scores = b.Op("MatMul", {parts[0], k});
  scores = b.Op("Div", {scores, b.F32(std::sqrt(static_cast<float>(shape.head_size)))});
  scores = b.Op("Softmax", {MaskScores(b, scores, p)}, {OnnxBuilder::Int("axis", -1)});
  y = MergeHeads(b, b.Op("MatMul", {scores, v}), y, shape);
  std::string residual = b.Op("Add", {Conv1d(b, "attn.c_proj", y, p, p.hidden, p.hidden), x});
  y = LayerNorm(b, "ln_2", residual, p.hidden, kEpsilon);
  y = GeluTanh(b, Conv1d(b, "mlp.c_fc", y, p, p.hidden, 4 * p.hidden));
  return b.Op("Add", {Conv1d(b, "mlp.c_proj", y, p, 4 * p.hidden, p.hidden), residual});
}

}  // namespace

void BuildGpt2(OnnxBuilder& b, const ModelParams& p) {
  std::vector<NamedDim> cache = {{p.batch}, {p.heads}, {p.past}, {p.hidden / p.heads}};
  std::string x = b.Input("hidden_states", DType::kF32, {{p.batch}, {p.seq}, {p.hidden}});
  std::vector<std::string> keys(static_cast<size_t>(p.layers));
  std::vector<std::string> values(static_cast<size_t>(p.layers));
  for (size_t i = 0; p.past > 0 && i < keys.size(); ++i) {
    keys[i] = b.Input(StrCat("past_key_", i), DType::kF32, cache);
    values[i] = b.Input(StrCat("past_value_", i), DType::kF32, cache);
  }
  for (int64_t i = 0; i < p.layers; ++i) {
    auto scope = b.Enter(StrCat("h.", i));
    auto at = static_cast<size_t>(i);
    x = Block(b, x, keys[at], values[at], i, p);
  }
  b.Output(x, DType::kF32, {{p.batch}, {p.seq}, {p.hidden}});
}

}  // namespace fusion
