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

ModelParams WithPast(ModelParams params, int64_t seq, int64_t past) {
  params.seq = seq;
  params.past = past;
  return params;
}

ModelParams Llama() {
  ModelParams out = Transformer(128, 1, 512, 8, 1408);
  out.kv_heads = 2;
  return out;
}

ModelParams Images(int64_t channels, int64_t image, int64_t depth) {
  return {.depth = depth, .channels = channels, .image = image};
}

ModelParams Lstm(int64_t batch, int64_t steps) {
  return {.batch = batch, .hidden = 256, .cols = 256, .depth = steps};
}

void AddTransformers(std::vector<ModelSpec>* models) {
  const ModelParams base = Transformer(128, 1, 768, 12, 3072);
  const ModelParams t5 = Transformer(128, 1, 512, 8, 2048);
  ModelParams deep = base;
  deep.layers = 12;
  ModelParams patches = base;
  patches.image = 224;
  const std::vector<std::string> layer = {"batch", "seq", "layers", "hidden", "heads", "ff"};
  const std::vector<std::string> bert = {"batch", "seq", "layers", "hidden",
                                         "heads", "ff",  "dyn",    "qdq"};
  const std::vector<std::string> vit = {"batch", "image", "layers", "hidden", "heads", "ff"};
  const std::vector<std::string> gpt2 = {"batch", "seq", "layers", "hidden", "heads", "past"};
  const std::vector<std::string> llama = {"batch", "seq",      "layers", "hidden", "heads", "ff",
                                          "past",  "kv_heads", "dyn",    "int8",   "qdq"};
  const std::vector<std::string> decoder = {"batch",  "seq",   "source", "layers",
                                            "hidden", "heads", "ff"};
  models->insert(
      models->end(),
      {{"bert_layer", "one BERT-base encoder layer, i64 padding mask", base, bert, BuildBert},
       {"bert_12l", "BERT-base encoder, 12 layers", deep, bert, BuildBert},
       {"bert_tiny", "two small BERT layers", Transformer(64, 2, 128, 2, 512), bert, BuildBert},
       {"albert_12l", "ALBERT-base encoder: 12 layers share one set of weights, tanh GELU", deep,
        bert, BuildAlbert},
       {"vit_block", "one ViT-B/16 block on 197 patches", Transformer(197, 1, 768, 12, 3072), layer,
        BuildVit},
       {"vit_patch", "ViT-B/16 with one block: patch Conv, class token, classifier", patches, vit,
        BuildVitPatch},
       {"gpt2_layer", "one GPT-2 layer with a key/value cache of 96", WithPast(base, 32, 96), gpt2,
        BuildGpt2},
       {"gpt2_layer_nopast", "one GPT-2 layer over a prompt", base, gpt2, BuildGpt2},
       {"gpt2_layer_decode", "one GPT-2 layer for one token and a cache of 128",
        WithPast(base, 1, 128), gpt2, BuildGpt2},
       {"llama_small", "one Llama layer: RMSNorm, RoPE, grouped queries, SwiGLU", Llama(), llama,
        BuildLlama},
       {"llama_small_decode", "the same for one token and a cache of 256",
        WithPast(Llama(), 1, 256), llama, BuildLlama},
       {"t5_encoder", "one T5-small encoder layer: relative position bias computed in the graph",
        t5, layer, BuildT5Encoder},
       {"t5_decoder", "one T5-small decoder layer with cross attention", WithPast(t5, 64, 0),
        decoder, BuildT5Decoder},
       {"t5_gated", "one T5 1.1 base encoder layer: gated GELU", Transformer(128, 1, 768, 12, 2048),
        layer, BuildT5Gated}});
}

void AddParts(std::vector<ModelSpec>* models) {
  const std::vector<std::string> mha = {"batch", "seq", "past", "hidden", "heads"};
  const std::vector<std::string> mlp = {"rows", "cols", "depth"};
  const std::vector<std::string> matrix = {"rows", "cols"};
  const ModelParams heads = Transformer(128, 1, 768, 12, 0);
  ModelParams swiglu = Matrix(128, 1024);
  swiglu.ff = 2816;
  ModelParams softmax_gemm = Matrix(1024, 1024);
  softmax_gemm.hidden = 64;
  models->insert(
      models->end(),
      {{"mha", "attention on given q, k, v with a causal mask", heads, mha, BuildMha},
       {"mha_nomask", "attention on given q, k, v", Transformer(197, 1, 768, 12, 0), mha,
        BuildMhaNoMask},
       {"mha_q1", "attention of one query on 2048 keys", WithPast(heads, 1, 2047), mha,
        BuildMhaNoMask},
       {"mha_causal", "attention on given q, k, v, keys behind the query left out", heads, mha,
        BuildMhaCausal},
       {"matmul",
        "one MatMul by a weight of hidden x cols",
        Matrix(512, 768),
        {"rows", "cols", "hidden", "int8", "qdq"},
        BuildMatMul},
       {"mlp", "Gemm and Relu on a small batch, four times", Matrix(32, 128, 4), mlp, BuildMlp},
       {"mlp4_m64_n1024", "Gemm and Relu, four times", Matrix(64, 1024, 4), mlp, BuildMlp},
       {"mlp4_m4096_n64", "Gemm and Relu, four times", Matrix(4096, 64, 4), mlp, BuildMlp},
       {"mlp8_m1024_n128", "Gemm and Relu, eight times", Matrix(1024, 128, 8), mlp, BuildMlp},
       {"mlp8_m1024_n128_tanh", "Gemm and Tanh, eight times", Matrix(1024, 128, 8), mlp,
        BuildMlpTanh},
       {"mlp20_m512_n256", "Gemm and Relu, twenty times", Matrix(512, 256, 20), mlp, BuildMlp},
       {"mlp20_m1_n256", "Gemm and Relu on one row, twenty times", Matrix(1, 256, 20), mlp,
        BuildMlp},
       {"swiglu",
        "gated feed-forward part of a Llama layer",
        swiglu,
        {"rows", "cols", "ff"},
        BuildSwiglu},
       {"add_relu", "MatMul, Add, Relu", Matrix(1024, 256), matrix, BuildAddRelu},
       {"bias_gelu", "Add and GELU in five nodes", Matrix(128, 3072), matrix, BuildBiasGelu},
       {"layernorm", "LayerNorm in nine nodes", Matrix(1024, 768), matrix, BuildLayerNorm},
       {"add_bias_layernorm", "bias, residual, LayerNorm", Matrix(1024, 768), matrix,
        BuildAddBiasLayerNorm},
       {"rmsnorm", "RMSNorm in seven nodes", Matrix(1024, 4096), matrix, BuildRmsNorm},
       {"softmax", "Softmax of the last dim", Matrix(1536, 512), matrix, BuildSoftmax},
       {"scale_mask_softmax", "Div, Add, Softmax", Matrix(1536, 512), matrix,
        BuildScaleMaskSoftmax},
       {"softmax_gemm",
        "Softmax, MatMul",
        softmax_gemm,
        {"rows", "cols", "hidden"},
        BuildSoftmaxGemm},
       {"elementwise", "a chain of element-wise ops on two inputs", Matrix(1024, 1024, 20), mlp,
        BuildElementwise}});
}

void AddOthers(std::vector<ModelSpec>* models) {
  const std::vector<std::string> lstm = {"batch", "cols", "hidden", "depth"};
  const std::vector<std::string> open_lstm = {"batch", "cols", "hidden", "depth", "dyn"};
  const std::vector<std::string> conv = {"batch", "channels", "image", "depth"};
  const std::vector<std::string> narrow_conv = {"batch", "channels", "image", "depth", "qdq"};
  models->insert(
      models->end(),
      {{"lstm_cell", "one step of an LSTM, one row", Lstm(1, 1), lstm, BuildLstmCell},
       {"lstm_cell_b16", "one step of an LSTM, 16 rows", Lstm(16, 1), lstm, BuildLstmCell},
       {"lstm_unroll10", "ten steps of an LSTM, unrolled", Lstm(16, 10), lstm, BuildLstmCell},
       {"lstm", "an LSTM along 128 steps", Lstm(16, 128), open_lstm, BuildLstm},
       {"loop",
        "a recurrence with as many passes as a run says",
        Lstm(4, 12),
        {"batch", "hidden", "depth"},
        BuildLoop},
       {"lengths",
        "random arithmetic on the length of a sequence, and ops that it decides (by seed)",
        {.seq = 16},
        {"batch", "seq", "dyn"},
        BuildLengths},
       {"two_lengths",
        "what follows from two lengths together: orders, cuts, choices (by seed)",
        {.batch = 6, .seq = 9},
        {"batch", "seq", "dyn"},
        BuildTwoLengths},
       {"conv_bias_leakyrelu", "3x3 Conv with bias, LeakyRelu", Images(64, 56, 1), narrow_conv,
        BuildConvBiasLeakyRelu},
       {"conv_bn_relu", "3x3 Conv, BatchNormalization, Relu, four times", Images(32, 28, 4), conv,
        BuildConvBnRelu},
       {"conv_residual_relu", "3x3 Conv, Add of its input, Relu, twice", Images(64, 28, 2), conv,
        BuildConvResidualRelu},
       {"mbconv",
        "depthwise 3x3 Conv, Clip, 1x1 Conv, Add",
        Images(96, 56, 1),
        {"batch", "channels", "image"},
        BuildMbConv},
       {"conv1x1",
        "1x1 Conv with bias, Relu",
        Images(64, 56, 1),
        {"batch", "channels", "image", "qdq"},
        BuildConv1x1},
       {"depthwise",
        "depthwise 3x3 Conv with bias, Clip",
        Images(96, 56, 1),
        {"batch", "channels", "image"},
        BuildDepthwise},
       {"resnet50",
        "ResNet-50 as trained: Conv, BatchNormalization, Relu, pools, classifier",
        Images(64, 224, 1),
        {"batch", "image", "qdq"},
        BuildResNet50},
       {"inverted_bottleneck",
        "1x1 Conv to six times the channels, depthwise 3x3 Conv, 1x1 Conv back, Add",
        Images(24, 56, 1),
        {"batch", "channels", "image"},
        BuildInvertedBottleneck},
       {"preactivation", "BatchNormalization, Relu, 3x3 Conv, twice, Add", Images(32, 28, 1), conv,
        BuildPreactivation}});
}

std::vector<ModelSpec> MakeModels() {
  std::vector<ModelSpec> models;
  AddTransformers(&models);
  AddParts(&models);
  AddOthers(&models);
  return models;
}

// Above it extents of a test model are a typing error.
constexpr int64_t kMaxParam = 1 << 24;

absl::Status CheckParams(const ModelSpec& spec, const ModelParams& p) {
  for (int64_t v : {p.batch, p.seq, p.source, p.layers, p.hidden, p.heads, p.kv_heads, p.rows,
                    p.cols, p.depth, p.channels, p.image}) {
    if (v < 1 || v > kMaxParam)
      return InvalidArgument(spec.name, ": a parameter is ", v, ", expected 1..", kMaxParam);
  }
  if (p.past < 0 || p.past > kMaxParam || p.ff < 0 || p.ff > kMaxParam) {
    return InvalidArgument(spec.name, ": past is ", p.past, ", ff is ", p.ff, ", expected 0..",
                           kMaxParam);
  }
  if (spec.build == BuildVitPatch && p.image < 16) {
    return InvalidArgument(spec.name, ": image is ", p.image, ", expected 16 or more: one patch");
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
  if (params.int8) builder.UseInt8();
  if (params.qdq) builder.UseQdq();
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
        case InputFill::kOnes:
          t.SetInt(i, 1);
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
