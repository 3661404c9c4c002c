#include <cmath>

#include "tests/models/layers.h"
#include "tests/models/models.h"

namespace fusion {
namespace {

std::string One(OnnxBuilder& b, int64_t value) { return b.I64(std::vector<int64_t>{value}); }

// 0, 1, .., extent - 1
std::string Positions(OnnxBuilder& b, int64_t extent) {
  return b.Op("Range", {b.I64(0), b.I64(extent), b.I64(1)});
}

// Which of the 32 embeddings a distance key - query has: each small one its own, large ones by
// their logarithm; with both directions half of them for each. Integer arithmetic, as exported.
std::string Buckets(OnnxBuilder& b, int64_t extent, bool both_directions) {
  constexpr double kFarthest = 128;
  int64_t buckets = both_directions ? 16 : 32;
  std::string query = b.Op("Unsqueeze", {Positions(b, extent), One(b, 1)});
  std::string key = b.Op("Unsqueeze", {Positions(b, extent), One(b, 0)});
  std::string relative = b.Op("Sub", {key, query});
  std::string distance =
      both_directions ? b.Op("Abs", {relative}) : b.Op("Neg", {b.Op("Min", {relative, b.I64(0)})});
  int64_t exact = buckets / 2;
  std::string is_small = b.Op("Less", {distance, b.I64(exact)});
  std::string large = b.Op("Cast", {distance}, {OnnxBuilder::Int("to", onnx::TensorProto::FLOAT)});
  large = b.Op("Log", {b.Op("Div", {large, b.F32(static_cast<float>(exact))})});
  auto range = static_cast<float>(std::log(kFarthest / static_cast<double>(exact)));
  large = b.Op("Div", {large, b.F32(range)});
  large = b.Op("Mul", {large, b.F32(static_cast<float>(buckets - exact))});
  large = b.Op("Cast", {large}, {OnnxBuilder::Int("to", onnx::TensorProto::INT64)});
  large = b.Op("Min", {b.Op("Add", {large, b.I64(exact)}), b.I64(buckets - 1)});
  std::string bucket = b.Op("Where", {is_small, distance, large});
  if (!both_directions) return bucket;
  std::string ahead = b.Op("Cast", {b.Op("Greater", {relative, b.I64(0)})},
                           {OnnxBuilder::Int("to", onnx::TensorProto::INT64)});
  return b.Op("Add", {b.Op("Mul", {ahead, b.I64(buckets)}), bucket});
}

// [1, H, S, S]
std::string PositionBias(OnnxBuilder& b, const ModelParams& p, bool both_directions) {
  auto scope = b.Enter("relative_attention_bias");
  std::string table = b.Weight("weight", {32, p.heads}, 0.3f);
  std::string bias =
      b.Op("Gather", {table, Buckets(b, p.seq, both_directions)}, {OnnxBuilder::Int("axis", 0)});
  bias = b.Op("Transpose", {bias}, {OnnxBuilder::Ints("perm", {2, 0, 1})});
  return b.Op("Unsqueeze", {bias, One(b, 0)});
}

// [S, S]: 0 where key <= query, else -10000.
std::string CausalMask(OnnxBuilder& b, const ModelParams& p) {
  std::string positions = Positions(b, p.seq);
  std::string seen = b.Op("LessOrEqual", {b.Op("Unsqueeze", {positions, One(b, 0)}),
                                          b.Op("Unsqueeze", {positions, One(b, 1)})});
  seen = b.Op("Cast", {seen}, {OnnxBuilder::Int("to", onnx::TensorProto::FLOAT)});
  return b.Op("Mul", {b.Op("Sub", {b.F32(1), seen}), b.F32(-10000)});
}

// What attention adds to x. T5 does not scale its scores. `source`: where keys and values come
// from.
std::string AttentionOf(OnnxBuilder& b, const std::string& module, const std::string& y,
                        const std::string& source, int64_t source_seq, const std::string& bias,
                        const ModelParams& p) {
  auto scope = b.Enter(module);
  AttentionShape shape{p.batch, p.seq, p.heads, p.hidden / p.heads};
  AttentionShape keys = shape;
  keys.seq = source_seq;
  std::string q = SplitHeads(b, Linear(b, "q", y, p.hidden, p.hidden, false), y, shape);
  std::string k = Linear(b, "k", source, p.hidden, p.hidden, false);
  std::string v = Linear(b, "v", source, p.hidden, p.hidden, false);
  k = SplitHeads(b, k, source, keys, /*transposed=*/true);
  v = SplitHeads(b, v, source, keys);
  std::string scores = b.Op("MatMul", {q, k});
  if (!bias.empty()) scores = b.Op("Add", {scores, bias});
  scores = b.Op("Softmax", {scores}, {OnnxBuilder::Int("axis", -1)});
  std::string mixed = MergeHeads(b, b.Op("MatMul", {scores, v}), y, shape);
  return Linear(b, "o", mixed, p.hidden, p.hidden, false);
}

std::string FeedForward(OnnxBuilder& b, const std::string& y, bool gated, const ModelParams& p) {
  auto scope = b.Enter("DenseReluDense");
  std::string wide;
  if (gated) {
    wide = GeluTanh(b, Linear(b, "wi_0", y, p.hidden, p.ff, false));
    wide = b.Op("Mul", {wide, Linear(b, "wi_1", y, p.hidden, p.ff, false)});
  } else {
    wide = b.Op("Relu", {Linear(b, "wi", y, p.hidden, p.ff, false)});
  }
  return Linear(b, "wo", wide, p.ff, p.hidden, false);
}

struct Variant {
  bool decoder = false;
  bool gated = false;  // T5 1.1
};

void BuildT5(OnnxBuilder& b, const ModelParams& p, const Variant& variant) {
  std::vector<NamedDim> dims = {{p.batch}, {p.seq}, {p.hidden}};
  std::string x = b.Input("hidden_states", DType::kF32, dims);
  std::string mask = b.Input("attention_mask", DType::kI64, {{p.batch}, {p.seq}},
                             variant.decoder ? InputFill::kOnes : InputFill::kPaddingMask);
  std::string encoded;
  if (variant.decoder) {
    encoded = b.Input("encoder_hidden_states", DType::kF32, {{p.batch}, {p.source}, {p.hidden}});
  }
  std::string bias = b.Op(
      "Add", {PositionBias(b, p, /*both_directions=*/!variant.decoder), ExtendedMask(b, mask)});
  if (variant.decoder) bias = b.Op("Add", {bias, CausalMask(b, p)});
  for (int64_t i = 0; i < p.layers; ++i) {
    auto scope = b.Enter(StrCat("block.", i));
    std::string y = RmsNorm(b, "layer.0.layer_norm", x, p.hidden);
    x = b.Op("Add", {x, AttentionOf(b, "layer.0.SelfAttention", y, y, p.seq, bias, p)});
    if (variant.decoder) {
      y = RmsNorm(b, "layer.1.layer_norm", x, p.hidden);
      x = b.Op("Add", {x, AttentionOf(b, "layer.1.EncDecAttention", y, encoded, p.source, "", p)});
    }
    y = RmsNorm(b, "layer.2.layer_norm", x, p.hidden);
    x = b.Op("Add", {x, FeedForward(b, y, variant.gated, p)});
  }
  b.Output(x, DType::kF32, dims);
}

}  // namespace

void BuildT5Encoder(OnnxBuilder& b, const ModelParams& p) { BuildT5(b, p, {}); }

void BuildT5Decoder(OnnxBuilder& b, const ModelParams& p) { BuildT5(b, p, {.decoder = true}); }

void BuildT5Gated(OnnxBuilder& b, const ModelParams& p) { BuildT5(b, p, {.gated = true}); }

}  // namespace fusion
