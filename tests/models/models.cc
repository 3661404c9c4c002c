#include "tests/models/models.h"

#include <algorithm>

namespace fusion {
namespace {

ModelParams Transformer(int64_t seq, int64_t layers, int64_t hidden, int64_t heads, int64_t ff) {
  return {
      .seq = seq, .layers = layers, .hidden = hidden, .heads = heads, .kv_heads = heads, .ff = ff};
}

ModelParams Matrix(int64_t rows, int64_t cols, int64_t depth = 1) {
  return {.rows = rows, .cols = cols, .depth = depth};
}

std::vector<ModelSpec> MakeModels() {
  const std::vector<std::string> layer = {"batch", "seq", "layers", "hidden", "heads", "ff"};
  std::vector<std::string> bert = layer;
  bert.push_back("dyn");
  std::vector<std::string> gpt2 = layer;
  gpt2.push_back("past");
  gpt2.erase(std::find(gpt2.begin(), gpt2.end(), "ff"));
  std::vector<std::string> llama = layer;
  llama.insert(llama.end(), {"past", "kv_heads", "dyn"});
  const std::vector<std::string> mlp = {"rows", "cols", "depth"};
  const std::vector<std::string> matrix = {"rows", "cols"};
  const std::vector<std::string> mha = {"batch", "seq", "hidden", "heads"};
  ModelParams with_past = Transformer(32, 1, 768, 12, 3072);
  with_past.past = 96;
  ModelParams llama_small = Transformer(128, 1, 512, 8, 1408);
  llama_small.kv_heads = 2;
  ModelParams llama_decode = llama_small;
  llama_decode.seq = 1;
  llama_decode.past = 256;
  ModelParams swiglu = Matrix(128, 1024);
  swiglu.ff = 2816;
  std::vector<std::string> gated = matrix;
  gated.push_back("ff");
  return {
      {"bert_layer", "one BERT-base encoder layer, i64 padding mask",
       Transformer(128, 1, 768, 12, 3072), bert, BuildBert},
      {"bert_12l", "BERT-base encoder, 12 layers", Transformer(128, 12, 768, 12, 3072), bert,
       BuildBert},
      {"bert_tiny", "two small BERT layers", Transformer(64, 2, 128, 2, 512), bert, BuildBert},
      {"vit_block", "one ViT-B/16 block on 197 patches", Transformer(197, 1, 768, 12, 3072), layer,
       BuildVit},
      {"gpt2_layer", "one GPT-2 layer with a key/value cache of 96", with_past, gpt2, BuildGpt2},
      {"gpt2_layer_nopast", "one GPT-2 layer over a prompt", Transformer(128, 1, 768, 12, 3072),
       gpt2, BuildGpt2},
      {"llama_small", "one Llama layer: RMSNorm, RoPE, grouped queries, SwiGLU", llama_small, llama,
       BuildLlama},
      {"llama_small_decode", "the same for one token and a cache of 256", llama_decode, llama,
       BuildLlama},
      {"mha", "attention on given q, k, v with a causal mask", Transformer(128, 1, 768, 12, 0), mha,
       BuildMha},
      {"mha_nomask", "attention on given q, k, v", Transformer(197, 1, 768, 12, 0), mha,
       BuildMhaNoMask},
      {"mlp", "Gemm and Relu on a small batch, four times", Matrix(32, 128, 4), mlp, BuildMlp},
      {"mlp4_m64_n1024", "Gemm and Relu, four times", Matrix(64, 1024, 4), mlp, BuildMlp},
      {"mlp4_m4096_n64", "Gemm and Relu, four times", Matrix(4096, 64, 4), mlp, BuildMlp},
      {"mlp8_m1024_n128", "Gemm and Relu, eight times", Matrix(1024, 128, 8), mlp, BuildMlp},
      {"mlp20_m512_n256", "Gemm and Relu, twenty times", Matrix(512, 256, 20), mlp, BuildMlp},
      {"mlp20_m1_n256", "Gemm and Relu on one row, twenty times", Matrix(1, 256, 20), mlp,
       BuildMlp},
      {"swiglu", "gated feed-forward part of a Llama layer", swiglu, gated, BuildSwiglu},
      {"add_relu", "MatMul, Add, Relu", Matrix(1024, 256), matrix, BuildAddRelu},
      {"layernorm", "LayerNorm in nine nodes", Matrix(1024, 768), matrix, BuildLayerNorm},
      {"rmsnorm", "RMSNorm in seven nodes", Matrix(1024, 4096), matrix, BuildRmsNorm},
      {"softmax", "Softmax of the last dim", Matrix(1536, 512), matrix, BuildSoftmax},
      {"scale_mask_softmax", "Div, Add, Softmax", Matrix(1536, 512), matrix, BuildScaleMaskSoftmax},
      {"elementwise", "a chain of element-wise ops on two inputs", Matrix(1024, 1024, 20), mlp,
       BuildElementwise},
  };
}

// Above it extents of a test model are a typing error.
constexpr int64_t kMaxParam = 1 << 24;

absl::Status CheckParams(const ModelSpec& spec, const ModelParams& p) {
  for (int64_t v :
       {p.batch, p.seq, p.layers, p.hidden, p.heads, p.kv_heads, p.rows, p.cols, p.depth}) {
    if (v < 1 || v > kMaxParam)
      return InvalidArgument(spec.name, ": a parameter is ", v, ", expected 1..", kMaxParam);
  }
  if (p.past < 0 || p.past > kMaxParam || p.ff < 0 || p.ff > kMaxParam) {
    return InvalidArgument(spec.name, ": past is ", p.past, ", ff is ", p.ff, ", expected 0..",
                           kMaxParam);
  }
  bool attention = std::find(spec.uses.begin(), spec.uses.end(), "heads") != spec.uses.end();
  if (attention &&
      (p.hidden % p.heads != 0 || p.hidden / p.heads % 2 != 0 || p.heads % p.kv_heads != 0)) {
    return InvalidArgument(
        spec.name, ": hidden ", p.hidden, ", heads ", p.heads, ", kv_heads ", p.kv_heads,
        "; expected heads to divide hidden into even parts and kv_heads to divide heads");
  }
  return absl::OkStatus();
}

}  // namespace

const std::vector<ModelSpec>& AllModels() {
  static const auto* const kModels = new std::vector<ModelSpec>(MakeModels());  // lives for ever
  return *kModels;
}

const ModelSpec* FindModel(std::string_view name) {
  for (const ModelSpec& spec : AllModels()) {
    if (spec.name == name) return &spec;
  }
  return nullptr;
}

absl::StatusOr<GeneratedModel> GenerateModel(const ModelSpec& spec, const ModelParams& params) {
  RETURN_IF_ERROR(CheckParams(spec, params));
  OnnxBuilder builder(spec.name, params.seed, params.dynamic);
  spec.build(builder, params);
  std::vector<InputSpec> inputs = builder.inputs();
  return GeneratedModel{std::move(builder).Finish(), std::move(inputs)};
}

absl::StatusOr<GeneratedModel> GenerateModel(std::string_view name) {
  const ModelSpec* spec = FindModel(name);
  if (spec == nullptr) {
    return NotFound("no model ", QuoteShort(name), "; models: ",
                    StrJoin(AllModels(), ", ", [](const ModelSpec& s) { return s.name; }));
  }
  return GenerateModel(*spec, spec->defaults);
}

std::vector<HostTensor> GenerateInputs(const std::vector<InputSpec>& inputs, uint64_t seed) {
  constexpr uint64_t kDataStream = uint64_t{1} << 32;  // far from the streams of weights
  std::vector<HostTensor> out;
  for (const InputSpec& spec : inputs) {
    HostTensor t(spec.dtype, spec.dims);
    Random random(seed, kDataStream + out.size());
    int64_t columns = spec.dims.empty() ? 1 : spec.dims.back();
    int64_t rows = spec.dims.size() < 2 ? 1 : spec.dims[spec.dims.size() - 2];
    for (int64_t i = 0; i < t.elements(); ++i) {
      int64_t column = i % columns;
      int64_t row = i / columns % rows;
      switch (spec.fill) {
        case InputFill::kNormal:
          t.SetDouble(i, static_cast<double>(random.Normal()));
          break;
        case InputFill::kPaddingMask:
          t.SetInt(i, column < columns - columns / 8 ? 1 : 0);
          break;
        case InputFill::kPositions:
          t.SetInt(i, column + spec.past);
          break;
        case InputFill::kCausalMask:
          t.SetDouble(i, column <= row + columns - rows ? 0 : -10000);
          break;
      }
    }
    out.push_back(std::move(t));
  }
  return out;
}

}  // namespace fusion
