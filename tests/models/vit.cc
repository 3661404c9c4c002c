#include "tests/models/layers.h"
#include "tests/models/models.h"

namespace fusion {

void BuildVit(OnnxBuilder& b, const ModelParams& p) {
  constexpr float kEpsilon = 1e-12f;
  AttentionShape shape{p.batch, p.seq, p.heads, p.hidden / p.heads};
  std::string x = b.Input("hidden_states", DType::kF32, {{p.batch}, {p.seq}, {p.hidden}});
  for (int64_t i = 0; i < p.layers; ++i) {
    auto scope = b.Enter(StrCat("layer.", i));
    std::string y = LayerNorm(b, "layernorm_before", x, p.hidden, kEpsilon);
    std::string q = SplitHeads(b, Linear(b, "attention.query", y, p.hidden, p.hidden), y, shape);
    std::string k = Linear(b, "attention.key", y, p.hidden, p.hidden);
    std::string v = SplitHeads(b, Linear(b, "attention.value", y, p.hidden, p.hidden), y, shape);
    k = SplitHeads(b, k, y, shape, /*transposed=*/true);
    y = MergeHeads(b, Attention(b, q, k, v, shape.head_size, ""), y, shape);
    x = b.Op("Add", {Linear(b, "attention.output", y, p.hidden, p.hidden), x});
    y = LayerNorm(b, "layernorm_after", x, p.hidden, kEpsilon);
    y = Gelu(b, Linear(b, "intermediate", y, p.hidden, p.ff));
    x = b.Op("Add", {Linear(b, "output", y, p.ff, p.hidden), x});
  }
  b.Output(x, DType::kF32, {{p.batch}, {p.seq}, {p.hidden}});
}

}  // namespace fusion
