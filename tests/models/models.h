#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "tests/models/onnx_builder.h"

namespace fusion {

/// The numbers of a generated model; each model uses some of them (ModelSpec::uses).
struct ModelParams {
  int64_t batch = 1;
  int64_t seq = 128;
  int64_t past = 0;      // tokens in the key/value cache
  int64_t source = 128;  // tokens that a decoder attends to across
  int64_t layers = 1;
  int64_t hidden = 768;
  int64_t heads = 12;
  int64_t kv_heads = 12;
  int64_t ff = 3072;  // hidden extent of the feed-forward part
  int64_t rows = 1024;
  int64_t cols = 768;
  int64_t depth = 4;  // layers of an MLP, ops of a chain, steps of a recurrence, convolutions
  int64_t channels = 64;
  int64_t image = 56;  // height and width
  uint64_t seed = 1;   // of weight values and test data; only "lengths" and "two_lengths" are other
                       // models for each
  bool int8 = false;   // matrices of Linear are i8 with scales
  bool qdq = false;    // and what they are multiplied with is u8, quantised in the graph
  bool dynamic = false;  // batch and seq are symbols, shapes are computed in the graph
};

/// A model that the generator knows.
struct ModelSpec {
  std::string name;
  std::string what;
  ModelParams defaults;
  /// Names of the parameters it uses besides seed: "batch", "seq", ..., "dyn".
  std::vector<std::string> uses;
  void (*build)(OnnxBuilder& b, const ModelParams& p) = nullptr;
};

struct GeneratedModel {
  onnx::ModelProto model;
  std::vector<InputSpec> inputs;
};

/// Every model, in the order of --list.
const std::vector<ModelSpec>& AllModels();
/// By name, or nullptr.
const ModelSpec* FindModel(std::string_view name);

/// Same parameters, same bytes. InvalidArgument for parameters that make no model.
absl::StatusOr<GeneratedModel> GenerateModel(const ModelSpec& spec, const ModelParams& params);
/// The model of this name with its defaults.
absl::StatusOr<GeneratedModel> GenerateModel(std::string_view name);

/// Values for the inputs of a model.
std::vector<HostTensor> GenerateInputs(const std::vector<InputSpec>& inputs, uint64_t seed);

// The families.
void BuildBert(OnnxBuilder& b, const ModelParams& p);
void BuildAlbert(OnnxBuilder& b, const ModelParams& p);
void BuildVit(OnnxBuilder& b, const ModelParams& p);
void BuildVitPatch(OnnxBuilder& b, const ModelParams& p);
void BuildGpt2(OnnxBuilder& b, const ModelParams& p);
void BuildLlama(OnnxBuilder& b, const ModelParams& p);
void BuildT5Encoder(OnnxBuilder& b, const ModelParams& p);
void BuildT5Decoder(OnnxBuilder& b, const ModelParams& p);
void BuildT5Gated(OnnxBuilder& b, const ModelParams& p);
void BuildMha(OnnxBuilder& b, const ModelParams& p);
void BuildMhaNoMask(OnnxBuilder& b, const ModelParams& p);
void BuildMhaCausal(OnnxBuilder& b, const ModelParams& p);
void BuildMatMul(OnnxBuilder& b, const ModelParams& p);
void BuildMlp(OnnxBuilder& b, const ModelParams& p);
void BuildMlpTanh(OnnxBuilder& b, const ModelParams& p);
void BuildAddRelu(OnnxBuilder& b, const ModelParams& p);
void BuildLayerNorm(OnnxBuilder& b, const ModelParams& p);
void BuildRmsNorm(OnnxBuilder& b, const ModelParams& p);
void BuildSoftmax(OnnxBuilder& b, const ModelParams& p);
void BuildScaleMaskSoftmax(OnnxBuilder& b, const ModelParams& p);
void BuildAddBiasLayerNorm(OnnxBuilder& b, const ModelParams& p);
void BuildSoftmaxGemm(OnnxBuilder& b, const ModelParams& p);
void BuildBiasGelu(OnnxBuilder& b, const ModelParams& p);
void BuildSwiglu(OnnxBuilder& b, const ModelParams& p);
void BuildElementwise(OnnxBuilder& b, const ModelParams& p);
void BuildLstmCell(OnnxBuilder& b, const ModelParams& p);
void BuildLstm(OnnxBuilder& b, const ModelParams& p);
void BuildLoop(OnnxBuilder& b, const ModelParams& p);
void BuildLengths(OnnxBuilder& b, const ModelParams& p);
void BuildTwoLengths(OnnxBuilder& b, const ModelParams& p);
void BuildConvBiasLeakyRelu(OnnxBuilder& b, const ModelParams& p);
void BuildConvBnRelu(OnnxBuilder& b, const ModelParams& p);
void BuildConvResidualRelu(OnnxBuilder& b, const ModelParams& p);
void BuildMbConv(OnnxBuilder& b, const ModelParams& p);
void BuildConv1x1(OnnxBuilder& b, const ModelParams& p);
void BuildDepthwise(OnnxBuilder& b, const ModelParams& p);
void BuildResNet50(OnnxBuilder& b, const ModelParams& p);
void BuildInvertedBottleneck(OnnxBuilder& b, const ModelParams& p);
void BuildPreactivation(OnnxBuilder& b, const ModelParams& p);

}  // namespace fusion
