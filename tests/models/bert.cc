#include "tests/models/layers.h"
#include "tests/models/models.h"

namespace fusion {
namespace {

enum class Activation { kGelu, kGeluTanh };

std::string EncoderLayer(OnnxBuilder& b, const std::string& x, const std::string& mask,
                         Activation activation, const ModelParams& p) {
  constexpr float kEpsilon = 1e-12f;
  AttentionShape shape{p.batch, p.seq, p.heads, p.hidden / p.heads};
  std::string y;
  {
    auto scope = b.Enter("attention");
    std::string q = Linear(b, "query", x, p.hidden, p.hidden);
    std::string k = Linear(b, "key", x, p.hidden, p.hidden);
    std::string v = Linear(b, "value", x, p.hidden, p.hidden);
    q = SplitHeads(b, q, x, shape);
    v = SplitHeads(b, v, x, shape);
    k = SplitHeads(b, k, x, shape, /*transposed=*/true);
    y = MergeHeads(b, Attention(b, q, k, v, shape.head_size, mask), x, shape);
    y = b.Op("Add", {Linear(b, "output.dense", y, p.hidden, p.hidden), x});
    y = LayerNorm(b, "output.LayerNorm", y, p.hidden, kEpsilon);
  }
  std::string wide = Linear(b, "intermediate.dense", y, p.hidden, p.ff);
  wide = activation == Activation::kGelu ? Gelu(b, wide) : GeluTanh(b, wide);
  std::string sum = b.Op("Add", {Linear(b, "output.dense", wide, p.ff, p.hidden), y});
  return LayerNorm(b, "output.LayerNorm", sum, p.hidden, kEpsilon);
}

struct EncoderInputs {
  std::string x;
  std::string mask;  // to be added to scores
};

EncoderInputs Inputs(OnnxBuilder& b, const ModelParams& p) {
  NamedDim batch{p.batch, "batch"};
  NamedDim seq{p.seq, "seq"};
  std::string x = b.Input("hidden_states", DType::kF32, {batch, seq, {p.hidden}});
  std::string mask = b.Input("attention_mask", DType::kI64, {batch, seq}, InputFill::kPaddingMask);
  return {x, ExtendedMask(b, mask)};
}

void Result(OnnxBuilder& b, const std::string& x, const ModelParams& p) {
  b.Output(x, DType::kF32, {{p.batch, "batch"}, {p.seq, "seq"}, {p.hidden}});
}

}  // namespace

void BuildBert(OnnxBuilder& b, const ModelParams& p) {
  auto [x, mask] = Inputs(b, p);
  for (int64_t i = 0; i < p.layers; ++i) {
    auto scope = b.Enter(StrCat("layer.", i));
    x = EncoderLayer(b, x, mask, Activation::kGelu, p);
  }
  Result(b, x, p);
}

// One layer, as often as there are layers.
void BuildAlbert(OnnxBuilder& b, const ModelParams& p) {
  auto [x, mask] = Inputs(b, p);
  for (int64_t i = 0; i < p.layers; ++i) {
    auto scope = b.Enter("albert_layers.0");
    x = EncoderLayer(b, x, mask, Activation::kGeluTanh, p);
  }
  Result(b, x, p);
}

}  // namespace fusion
