#pragma once

#include <string>

#include "tests/models/onnx_builder.h"

namespace fusion {

/// Modules of transformer networks as exporters take them apart: one ONNX node per framework op,
/// constants as scalar initialisers, shapes as initialisers or, in dynamic models, as
/// Shape/Gather/Unsqueeze/Concat arithmetic. All take and return names of tensors.

/// x W + b (MatMul, Add); without bias just MatMul.
std::string Linear(OnnxBuilder& b, const std::string& module, const std::string& x, int64_t in,
                   int64_t out, bool bias = true);
/// x W + b as one Gemm of rank 2.
std::string GemmLinear(OnnxBuilder& b, const std::string& module, const std::string& x, int64_t in,
                       int64_t out);
/// LayerNorm of the last dim in nine nodes.
std::string LayerNorm(OnnxBuilder& b, const std::string& module, const std::string& x,
                      int64_t extent, float epsilon);
/// RMSNorm of the last dim in seven nodes.
std::string RmsNorm(OnnxBuilder& b, const std::string& module, const std::string& x,
                    int64_t extent);
/// GELU with erf, five nodes; with tanh, eight.
std::string Gelu(OnnxBuilder& b, const std::string& x);
std::string GeluTanh(OnnxBuilder& b, const std::string& x);
/// x sigmoid(x)
std::string Silu(OnnxBuilder& b, const std::string& x);

/// The numbers of an attention layer. In a dynamic model batch and seq are taken from the tensor a
/// function is given.
struct AttentionShape {
  int64_t batch = 1;
  int64_t seq = 1;
  int64_t heads = 1;
  int64_t head_size = 1;
};

/// [B, S, H*D] -> [B, H, S, D], or [B, H, D, S] if `transposed`. `like`: a tensor [B, S, ..] for
/// dynamic shapes.
std::string SplitHeads(OnnxBuilder& b, const std::string& x, const std::string& like,
                       const AttentionShape& shape, bool transposed = false);
/// [B, H, S, D] -> [B, S, H*D]
std::string MergeHeads(OnnxBuilder& b, const std::string& x, const std::string& like,
                       const AttentionShape& shape);
/// softmax(q k / sqrt(D) + mask) v. `k_transposed` is [B, H, D, T]; no mask if empty.
std::string Attention(OnnxBuilder& b, const std::string& q, const std::string& k_transposed,
                      const std::string& v, int64_t head_size, const std::string& mask);
/// An i64 padding mask [B, S] as something to add to scores: (1 - mask[:, None, None, :]) * -10000.
std::string ExtendedMask(OnnxBuilder& b, const std::string& mask);

/// cos and sin of rotary positions, [B, 1, S, D] each.
struct Rotary {
  std::string cos;
  std::string sin;
};
Rotary RotaryTables(OnnxBuilder& b, const std::string& position_ids, int64_t head_size);
/// x cos + rotate_half(x) sin, x [B, H, S, D].
std::string ApplyRotary(OnnxBuilder& b, const std::string& x, const Rotary& rotary,
                        int64_t head_size);
/// [B, KV, T, D] -> [B, KV * groups, T, D] by Unsqueeze, Expand, Reshape.
std::string RepeatKv(OnnxBuilder& b, const std::string& x, const AttentionShape& kv,
                     int64_t groups);

}  // namespace fusion
