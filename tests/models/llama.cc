#include "tests/models/layers.h"
#include "tests/models/models.h"

namespace fusion {
namespace {

struct LayerInputs {
  std::string x;
  std::string mask;
  std::string past_key;  // empty: no cache
  std::string past_value;
};

std::vector<NamedDim> CacheDims(const ModelParams& p, const NamedDim& length) {
  return {{p.batch, "batch"}, {p.kv_heads}, length, {p.hidden / p.heads}};
}

// Behind the cached keys or values; the result is an output of its own.
std::string BehindPast(OnnxBuilder& b, const std::string& x, const std::string& past,
                       const std::string& present, const ModelParams& p) {
  if (past.empty()) return x;
  std::string all = b.Op("Concat", {past, x}, {OnnxBuilder::Int("axis", 2)});
  b.Output(all, DType::kF32, CacheDims(p, {p.past + p.seq, "past + seq"}), present);
  return all;
}

std::string SelfAttention(OnnxBuilder& b, const LayerInputs& in, const std::string& y,
                          const Rotary& rotary, int64_t layer, const ModelParams& p) {
  auto scope = b.Enter("self_attn");
  int64_t head_size = p.hidden / p.heads;
  AttentionShape shape{p.batch, p.seq, p.heads, head_size};
  AttentionShape kv_shape{p.batch, p.seq, p.kv_heads, head_size};
  int64_t kv_size = p.kv_heads * head_size;
  std::string q = SplitHeads(b, Linear(b, "q_proj", y, p.hidden, p.hidden, false), y, shape);
  std::string k = SplitHeads(b, Linear(b, "k_proj", y, p.hidden, kv_size, false), y, kv_shape);
  std::string v = SplitHeads(b, Linear(b, "v_proj", y, p.hidden, kv_size, false), y, kv_shape);
  q = ApplyRotary(b, q, rotary, head_size);
  k = ApplyRotary(b, k, rotary, head_size);
  k = BehindPast(b, k, in.past_key, StrCat("present_key_", layer), p);
  v = BehindPast(b, v, in.past_value, StrCat("present_value_", layer), p);
  if (p.kv_heads != p.heads) {
    AttentionShape all = kv_shape;
    all.seq = p.past + p.seq;
    k = RepeatKv(b, k, all, p.heads / p.kv_heads);
    v = RepeatKv(b, v, all, p.heads / p.kv_heads);
  }
  k = b.Op("Transpose", {k}, {OnnxBuilder::Ints("perm", {0, 1, 3, 2})});
  std::string mixed = MergeHeads(b, Attention(b, q, k, v, head_size, in.mask), y, shape);
  return Linear(b, "o_proj", mixed, p.hidden, p.hidden, false);
}

std::string FeedForward(OnnxBuilder& b, const std::string& y, const ModelParams& p) {
  auto scope = b.Enter("mlp");
  std::string gate = Silu(b, Linear(b, "gate_proj", y, p.hidden, p.ff, false));
  std::string gated = b.Op("Mul", {gate, Linear(b, "up_proj", y, p.hidden, p.ff, false)});
  return Linear(b, "down_proj", gated, p.ff, p.hidden, false);
}

}  // namespace

void BuildLlama(OnnxBuilder& b, const ModelParams& p) {
  NamedDim batch{p.batch, "batch"};
  NamedDim seq{p.seq, "seq"};
  LayerInputs in;
  in.x = b.Input("hidden_states", DType::kF32, {batch, seq, {p.hidden}});
  std::string positions =
      b.Input("position_ids", DType::kI64, {batch, seq}, InputFill::kPositions, p.past);
  NamedDim total{p.past + p.seq, p.past > 0 ? "past + seq" : "seq"};
  in.mask =
      b.Input("attention_mask", DType::kF32, {batch, {1}, seq, total}, InputFill::kCausalMask);
  std::vector<std::string> keys(static_cast<size_t>(p.layers));
  std::vector<std::string> values(static_cast<size_t>(p.layers));
  for (size_t i = 0; p.past > 0 && i < keys.size(); ++i) {
    keys[i] = b.Input(StrCat("past_key_", i), DType::kF32, CacheDims(p, {p.past, "past"}));
    values[i] = b.Input(StrCat("past_value_", i), DType::kF32, CacheDims(p, {p.past, "past"}));
  }
  Rotary rotary = RotaryTables(b, positions, p.hidden / p.heads);
  for (int64_t i = 0; i < p.layers; ++i) {
    auto scope = b.Enter(StrCat("layers.", i));
    in.past_key = keys[static_cast<size_t>(i)];
    in.past_value = values[static_cast<size_t>(i)];
    std::string y = RmsNorm(b, "input_layernorm", in.x, p.hidden);
    in.x = b.Op("Add", {in.x, SelfAttention(b, in, y, rotary, i, p)});
    y = RmsNorm(b, "post_attention_layernorm", in.x, p.hidden);
    in.x = b.Op("Add", {in.x, FeedForward(b, y, p)});
  }
  b.Output(RmsNorm(b, "norm", in.x, p.hidden), DType::kF32, {batch, seq, {p.hidden}});
}

}  // namespace fusion
