#include "tests/models/layers.h"
#include "tests/models/models.h"

namespace fusion {
namespace {

constexpr float kEpsilon = 1e-12f;
constexpr int64_t kPatch = 16;
constexpr int64_t kColours = 3;
constexpr int64_t kClasses = 1000;

std::string Block(OnnxBuilder& b, const std::string& x, const ModelParams& p, int64_t seq) {
  AttentionShape shape{p.batch, seq, p.heads, p.hidden / p.heads};
  std::string y = LayerNorm(b, "layernorm_before", x, p.hidden, kEpsilon);
  std::string q = SplitHeads(b, Linear(b, "attention.query", y, p.hidden, p.hidden), y, shape);
  std::string k = Linear(b, "attention.key", y, p.hidden, p.hidden);
  std::string v = SplitHeads(b, Linear(b, "attention.value", y, p.hidden, p.hidden), y, shape);
  k = SplitHeads(b, k, y, shape, /*transposed=*/true);
  y = MergeHeads(b, Attention(b, q, k, v, shape.head_size, ""), y, shape);
  std::string sum = b.Op("Add", {Linear(b, "attention.output", y, p.hidden, p.hidden), x});
  y = LayerNorm(b, "layernorm_after", sum, p.hidden, kEpsilon);
  y = Gelu(b, Linear(b, "intermediate", y, p.hidden, p.ff));
  return b.Op("Add", {Linear(b, "output", y, p.ff, p.hidden), sum});
}

// [B, 3, image, image] -> [B, 1 + patches, hidden]: a convolution whose windows do not overlap, the
// class token in front, positions added.
std::string Embeddings(OnnxBuilder& b, const std::string& pixels, const ModelParams& p,
                       int64_t patches) {
  auto scope = b.Enter("embeddings");
  std::string x =
      b.Op("Conv",
           {pixels, b.Weight("projection.weight", {p.hidden, kColours, kPatch, kPatch}, 0.02f),
            b.Weight("projection.bias", {p.hidden}, 0.02f)},
           {OnnxBuilder::Ints("kernel_shape", {kPatch, kPatch}),
            OnnxBuilder::Ints("strides", {kPatch, kPatch})});
  x = b.Op("Reshape", {x, b.I64({p.batch, p.hidden, patches})});
  x = b.Op("Transpose", {x}, {OnnxBuilder::Ints("perm", {0, 2, 1})});
  std::string token = b.Weight("cls_token", {1, 1, p.hidden}, 0.02f);
  if (p.batch > 1) token = b.Op("Expand", {token, b.I64({p.batch, 1, p.hidden})});
  x = b.Op("Concat", {token, x}, {OnnxBuilder::Int("axis", 1)});
  std::string positions = b.Weight("position_embeddings", {1, patches + 1, p.hidden}, 0.02f);
  return b.Op("Add", {x, positions});
}

}  // namespace

void BuildVit(OnnxBuilder& b, const ModelParams& p) {
  std::string x = b.Input("hidden_states", DType::kF32, {{p.batch}, {p.seq}, {p.hidden}});
  for (int64_t i = 0; i < p.layers; ++i) {
    auto scope = b.Enter(StrCat("layer.", i));
    x = Block(b, x, p, p.seq);
  }
  b.Output(x, DType::kF32, {{p.batch}, {p.seq}, {p.hidden}});
}

// From pixels to classes; image extents are rounded down to whole patches.
void BuildVitPatch(OnnxBuilder& b, const ModelParams& p) {
  int64_t patches = p.image / kPatch * (p.image / kPatch);
  std::string pixels =
      b.Input("pixel_values", DType::kF32, {{p.batch}, {kColours}, {p.image}, {p.image}});
  std::string x = Embeddings(b, pixels, p, patches);
  for (int64_t i = 0; i < p.layers; ++i) {
    auto scope = b.Enter(StrCat("layer.", i));
    x = Block(b, x, p, patches + 1);
  }
  x = LayerNorm(b, "layernorm", x, p.hidden, kEpsilon);
  x = b.Op("Gather", {x, b.I64(0)}, {OnnxBuilder::Int("axis", 1)});
  b.Output(GemmLinear(b, "classifier", x, p.hidden, kClasses), DType::kF32,
           {{p.batch}, {kClasses}});
}

}  // namespace fusion
