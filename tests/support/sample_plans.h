#pragma once

#include "tests/support/sample_graphs.h"

namespace fusion {

/// The same of graphs that take several kernels: something between them is in another order in
/// memory, or looked up.
inline constexpr SampleGraph kSamplePlans[] = {
    {"conv_transpose", R"(graph "g" {
  %0 = input "x" : f32[2,4,5,3]
  %1 = weight "w" : f32[4,3,3,2]
  %2 = weight "b" : f32[6]
  %3 = ConvTranspose(%0, %1, %2) {dilations=[2, 1], group=2, output_padding=[1, 0], pads=[1, 0, 2, 1], strides=[2, 3]} : f32[2,6,11,7]  "" @ ""
  %4 = Relu(%3) : f32[2,6,11,7]  "" @ ""
  output %4
}
)"},
    {"scores_side_by_side", R"(graph "g" {
  %0 = input "q" : f32[2,300,24]
  %1 = input "k0" : f32[2,24,270]
  %2 = input "k1" : f32[2,131,24]
  %3 = input "mask" : f32[300,270]
  %4 = input "v0" : f32[2,270,40]
  %5 = input "v1" : f32[2,131,40]
  %6 = Transpose(%2) {perm=[0, 2, 1]} : f32[2,24,131]  "" @ ""
  %7 = MatMul(%0, %1) : f32[2,300,270]  "" @ ""
  %8 = MatMul(%0, %6) : f32[2,300,131]  "" @ ""
  %9 = Add(%7, %3) : f32[2,300,270]  "" @ ""
  %10 = Concat(%9, %8) {axis=2} : f32[2,300,401]  "" @ ""
  %11 = Softmax(%10) {axis=2} : f32[2,300,401]  "" @ ""
  %12 = Concat(%4, %5) {axis=1} : f32[2,401,40]  "" @ ""
  %13 = MatMul(%11, %12) : f32[2,300,40]  "" @ ""
  output %13
}
)"},
    {"scores_side_by_side_summed", R"(graph "g" {
  %0 = input "q" : f32[2,300,24]
  %1 = input "k0" : f32[2,24,200]
  %2 = input "k1" : f32[2,24,101]
  %3 = input "k2" : f32[2,24,64]
  %4 = input "v0" : f32[2,200,40]
  %5 = input "v1" : f32[2,101,40]
  %6 = input "v2" : f32[2,64,40]
  %7 = MatMul(%0, %1) : f32[2,300,200]  "" @ ""
  %8 = MatMul(%0, %2) : f32[2,300,101]  "" @ ""
  %9 = MatMul(%0, %3) : f32[2,300,64]  "" @ ""
  %10 = Concat(%7, %8, %9) {axis=2} : f32[2,300,365]  "" @ ""
  %11 = Softmax(%10) {axis=2} : f32[2,300,365]  "" @ ""
  %12 = Slice(%11) {axes=[2], ends=[200], starts=[0]} : f32[2,300,200]  "" @ ""
  %13 = Slice(%11) {axes=[2], ends=[301], starts=[200]} : f32[2,300,101]  "" @ ""
  %14 = Slice(%11) {axes=[2], ends=[365], starts=[301]} : f32[2,300,64]  "" @ ""
  %15 = MatMul(%12, %4) : f32[2,300,40]  "" @ ""
  %16 = MatMul(%13, %5) : f32[2,300,40]  "" @ ""
  %17 = MatMul(%14, %6) : f32[2,300,40]  "" @ ""
  %18 = Add(%15, %16) : f32[2,300,40]  "" @ ""
  %19 = Add(%18, %17) : f32[2,300,40]  "" @ ""
  output %19
}
)"},
    {"picked_classes", R"(graph "g" {
  %0 = input "x" : f32[129,40]
  %1 = weight "w" : f32[40,2001]
  %2 = weight "b" : f32[2001]
  %3 = weight "other" : f32[40,2001]
  %4 = MatMul(%0, %1) : f32[129,2001]  "" @ ""
  %5 = Add(%4, %2) : f32[129,2001]  "" @ ""
  %6 = LogSoftmax(%5) {axis=1} : f32[129,2001]  "" @ ""
  %7 = MatMul(%0, %3) : f32[129,2001]  "" @ ""
  %8 = ArgMax(%7) {axis=1} : i64[129,1]  "" @ ""
  %9 = GatherElements(%6, %8) {axis=1} : f32[129,1]  "" @ ""
  %10 = Neg(%9) : f32[129,1]  "" @ ""
  %11 = ReduceMean(%10) {keepdims=0} : f32[]  "" @ ""
  output %11
}
)"},
    {"determinants", R"(graph "g" {
  %0 = input "x" : f32[4,3,3]
  %1 = Det(%0) : f32[4]  "" @ ""
  output %1
}
)"},
    {"max_unpool", R"(graph "g" {
  %0 = input "x" : f32[1,2,3,2]
  %1 = input "i" : i64[1,2,3,2]
  %2 = MaxUnpool(%0, %1) {kernel_shape=[2, 2], output_shape=[1, 2, 7, 4], strides=[2, 2]} : f32[1,2,7,4]  "" @ ""
  output %2
}
)"},
    {"ngrams", R"(graph "g" {
  %0 = input "x" : i64[3,9]
  %1 = TfIdfVectorizer(%0) {max_gram_length=2, max_skip_count=1, min_gram_length=1, mode="TFIDF", ngram_counts=[0, 2], ngram_indexes=[1, 0, 3, 2], pool_int64s=[2, 3, 1, 2, 0, 3], weights=f[0.5, 1, 2, 4]} : f32[3,4]  "" @ ""
  output %1
}
)"},
    {"extrema_of_narrow_integers", R"(graph "g" {
  %0 = input "a" : u8[5,70]
  %1 = input "b" : i8[5,70]
  %2 = input "c" : u16[5,70]
  %3 = input "d" : i16[70,5]
  %4 = ReduceMax(%0) {axes=[1], keepdims=0} : u8[5]  "" @ ""
  %5 = ReduceMin(%1) {axes=[1], keepdims=0} : i8[5]  "" @ ""
  %6 = ReduceMax(%2) {axes=[1], keepdims=0} : u16[5]  "" @ ""
  %7 = ReduceMin(%3) {axes=[0], keepdims=0} : i16[5]  "" @ ""
  output %4
  output %5
  output %6
  output %7
}
)"},
    {"three_largest", R"(graph "g" {
  %0 = input "x" : f32[5,19]
  %1, %2 = TopK(%0) {axis=1, k=3} : f32[5,3], i64[5,3]  "", "" @ ""
  output %1
  output %2
}
)"},
    {"bits", R"(graph "g" {
  %0 = input "a" : u8[5,33]
  %1 = input "b" : u8[33]
  %2 = input "c" : i16[5,33]
  %3 = input "d" : i64[5,33]
  %4 = input "e" : u64[5,1]
  %5 = BitwiseAnd(%0, %1) : u8[5,33]  "" @ ""
  %6 = BitwiseNot(%5) : u8[5,33]  "" @ ""
  %7 = BitwiseXor(%2, %2) : i16[5,33]  "" @ ""
  %8 = BitwiseNot(%2) : i16[5,33]  "" @ ""
  %9 = BitwiseOr(%7, %8) : i16[5,33]  "" @ ""
  %10 = BitwiseNot(%3) : i64[5,33]  "" @ ""
  %11 = BitShift(%3, %10) {direction="RIGHT"} : i64[5,33]  "" @ ""
  %12 = BitwiseXor(%3, %11) : i64[5,33]  "" @ ""
  %13 = BitwiseNot(%4) : u64[5,1]  "" @ ""
  output %6
  output %9
  output %12
  output %13
}
)"},
    {"group_normalization", R"(graph "g" {
  %0 = input "x" : f32[2,6,5,3]
  %1 = input "s" : f32[6]
  %2 = input "b" : f32[6]
  %3 = GroupNormalization(%0, %1, %2) {num_groups=2} : f32[2,6,5,3]  "" @ ""
  output %3
}
)"},
    {"rms_normalization_in_f16", R"(graph "g" {
  %0 = input "x" : f16[13,40]
  %1 = weight "s" : f16[40]
  %2 = RMSNormalization(%0, %1) : f16[13,40]  "" @ ""
  output %2
}
)"},
    {"rotary_embedding", R"(graph "g" {
  %0 = input "x" : f32[2,3,5,10]
  %1 = weight "cos" : f32[11,4]
  %2 = weight "sin" : f32[11,4]
  %3 = input "p" : i64[2,5]
  %4 = RotaryEmbedding(%0, %1, %2, %3) {interleaved=1, rotary_embedding_dim=8} : f32[2,3,5,10]  "" @ ""
  output %4
}
)"},
    {"attention_op_in_groups", R"(graph "g" {
  %0 = input "q" : f32[2,7,24]
  %1 = input "k" : f32[2,5,12]
  %2 = input "v" : f32[2,5,10]
  %3 = input "m" : bool[7,9]
  %4 = input "pk" : f32[2,2,4,6]
  %5 = input "pv" : f32[2,2,4,5]
  %6, %7, %8 = Attention(%0, %1, %2, %3, %4, %5) {is_causal=1, kv_num_heads=2, q_num_heads=4, softcap=f(3)} : f32[2,7,20], f32[2,2,9,6], f32[2,2,9,5]  "", "", "" @ ""
  output %6
  output %7
  output %8
}
)"},
    {"attention_op_of_a_padded_cache", R"(graph "g" {
  %0 = input "q" : f32[2,3,4,8]
  %1 = input "k" : f32[2,3,19,8]
  %2 = input "v" : f32[2,3,19,8]
  %3 = const "" : i64[2] {13, 2}
  %4 = Attention(%0, %1, %2, -, -, -, %3) {is_causal=1} : f32[2,3,4,8]  "" @ ""
  output %4
}
)"},
    {"causal_convolution", R"(graph "g" {
  %0 = input "x" : f32[2,5,13]
  %1 = weight "w" : f32[5,1,4]
  %2 = weight "b" : f32[5]
  %3 = input "p" : f32[2,5,3]
  %4, %5 = CausalConvWithState(%0, %1, %2, %3) {activation="silu"} : f32[2,5,13], f32[2,5,3]  "", "" @ ""
  output %4
  output %5
}
)"},
    {"gated_units", R"(graph "g" {
  %0 = input "a" : f32[5,33]
  %1 = input "b" : f32[5,33]
  %2 = SwiGLU(%0, %1) {alpha=f(1.5)} : f32[5,33]  "" @ ""
  output %2
}
)"},
    {"affine_grid", R"(graph "g" {
  %0 = input "t" : f32[2,3,4]
  %1 = AffineGrid(%0) {align_corners=1, size=[2, 3, 4, 5, 1]} : f32[2,4,5,1,3]  "" @ ""
  output %1
}
)"},
    {"middle_of_a_tensor", R"(graph "g" {
  %0 = input "x" : f32[7,5,3]
  %1 = CenterCropPad(%0) {axes=[0, 2], shape=[4, 8]} : f32[4,5,8]  "" @ ""
  output %1
}
)"},
    {"image_of_columns", R"(graph "g" {
  %0 = input "x" : f32[2,18,12]
  %1 = Col2Im(%0) {block_shape=[2, 3], dilations=[2, 1], image_shape=[7, 6], pads=[1, 0, 1, 2], strides=[2, 2]} : f32[2,3,7,6]  "" @ ""
  output %1
}
)"},
    {"products_from_the_end", R"(graph "g" {
  %0 = input "x" : f32[3,13]
  %1 = CumProd(%0) {axis=[1], exclusive=1, reverse=1} : f32[3,13]  "" @ ""
  output %1
}
)"},
    {"deformed_convolution", R"(graph "g" {
  %0 = input "x" : f32[2,4,5,6]
  %1 = weight "w" : f32[6,2,3,2]
  %2 = input "o" : f32[2,24,3,3]
  %3 = weight "b" : f32[6]
  %4 = input "m" : f32[2,12,3,3]
  %5 = DeformConv(%0, %1, %2, %3, %4) {dilations=[1, 2], group=2, offset_group=2, pads=[1, 1, 1, 0], strides=[2, 2]} : f32[2,6,3,3]  "" @ ""
  output %5
}
)"},
    {"written_rows", R"(graph "g" {
  %0 = input "c" : f32[3,2,7,5]
  %1 = input "u" : f32[3,2,4,5]
  %2 = const "" : i64[3] {0, 5, 3}
  %3 = TensorScatter(%0, %1, %2) {mode="circular"} : f32[3,2,7,5]  "" @ ""
  output %3
}
)"},
    {"pool_of_regions", R"(graph "g" {
  %0 = input "x" : f32[2,3,9,7]
  %1 = const "" : f32[3,5] {0, 1, 2, 6, 8, 1, 0, 0, 3, 3, 1, 5, 7, 20, 20}
  %2 = MaxRoiPool(%0, %1) {pooled_shape=[3, 2], spatial_scale=f(0.75)} : f32[3,3,3,2]  "" @ ""
  output %2
}
)"},
    {"quantised_in_blocks", R"(graph "g" {
  %0 = input "x" : f32[5,14]
  %1 = const "" : f32[5,3] {0.5, 0.25, 1, 2, 0.125, 0.0625, 1, 1, 3, 0.5, 0.5, 0.5, 0.1, 0.2, 0.3}
  %2 = const "" : i16[5,3] {0, 1, 2, -300, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}
  %3 = QuantizeLinear(%0, %1, %2) {axis=1, block_size=5} : i16[5,14]  "" @ ""
  %4 = DequantizeLinear(%3, %1, %2) {axis=1, block_size=5} : f32[5,14]  "" @ ""
  output %3
  output %4
}
)"},
    {"attention_behind_a_past", R"(graph "g" {
  %0 = input "i0" : f32[2,5,10]
  %1 = input "i1" : f32[10,36]
  %2 = input "i2" : f32[36]
  %3 = input "i3" : i32[2,9]
  %4 = input "i4" : f32[2,2,3,4,4]
  %5, %6 = com.microsoft.Attention(%0, %1, %2, %3, %4) {num_heads=3, unidirectional=1} : f32[2,5,12], f32[2,2,3,9,4]  "", "" @ ""
  output %5
  output %6
}
)"},
    {"heads_behind_a_past", R"(graph "g" {
  %0 = input "i0" : f32[2,5,12]
  %1 = input "i1" : f32[2,5,12]
  %2 = input "i2" : f32[2,5,12]
  %3 = input "i4" : i32[2,9]
  %4 = input "i5" : f32[2,3,5,9]
  %5 = input "i6" : f32[2,3,4,4]
  %6 = input "i7" : f32[2,3,4,4]
  %7, %8, %9 = com.microsoft.MultiHeadAttention(%0, %1, %2, -, %3, %4, %5, %6) {num_heads=3, scale=f(0x1.333334p-2), unidirectional=0} : f32[2,5,12], f32[2,3,9,4], f32[2,3,9,4]  "", "", "" @ ""
  output %7
  output %8
  output %9
}
)"},
    {"grouped_heads_of_padded_prompts", R"(graph "g" {
  %0 = input "i0" : f32[2,5,64]
  %1 = input "i5" : i32[2]
  %2 = com.microsoft.GroupQueryAttention(%0, -, -, -, -, %1) {kv_num_heads=1, local_window_size=2, num_heads=2, total_sequence_length=5} : f32[2,5,32]  "" @ ""
  output %2
}
)"},
    {"grouped_heads_of_ragged_pasts", R"(graph "g" {
  %0 = input "i0" : f32[2,1,64]
  %1 = input "i1" : f32[2,1,32]
  %2 = input "i2" : f32[2,1,32]
  %3 = input "i3" : f32[2,2,6,16]
  %4 = input "i4" : f32[2,2,6,16]
  %5 = input "i5" : i32[2]
  %6, %7, %8 = com.microsoft.GroupQueryAttention(%0, %1, %2, %3, %4, %5) {kv_num_heads=2, num_heads=4, total_sequence_length=7} : f32[2,1,64], f32[2,2,7,16], f32[2,2,7,16]  "", "", "" @ ""
  output %6
  output %7
  output %8
}
)"},
    {"fused_conv_and_residual", R"(graph "g" {
  %0 = input "i0" : f32[2,3,9,7]
  %1 = input "i1" : f32[5,3,3,3]
  %2 = input "i2" : f32[5]
  %3 = input "i3" : f32[2,5,7,5]
  %4 = com.microsoft.FusedConv(%0, %1, %2, %3) {activation="Relu"} : f32[2,5,7,5]  "" @ ""
  output %4
}
)"},
    {"embeddings_and_mask_index", R"(graph "g" {
  %0 = input "i0" : i32[3,7]
  %1 = input "i1" : i32[3,7]
  %2 = input "i2" : f32[30,12]
  %3 = input "i3" : f32[9,12]
  %4 = input "i4" : f32[9,12]
  %5 = input "i5" : f32[12]
  %6 = input "i6" : f32[12]
  %7 = input "i7" : i32[3,7]
  %8, %9 = com.microsoft.EmbedLayerNormalization(%0, %1, %2, %3, %4, %5, %6, %7) {epsilon=f(0x1.197998p-40)} : f32[3,7,12], i32[3]  "", "" @ ""
  output %8
  output %9
}
)"},
    {"rotary_of_neighbours", R"(graph "g" {
  %0 = input "i0" : f32[2,5,36]
  %1 = input "i1" : i64[2,5]
  %2 = input "i2" : f32[20,4]
  %3 = input "i3" : f32[20,4]
  %4 = com.microsoft.RotaryEmbedding(%0, %1, %2, %3) {interleaved=1, num_heads=3, rotary_embedding_dim=8} : f32[2,5,36]  "" @ ""
  output %4
}
)"},
    {"group_norm_channels_last", R"(graph "g" {
  %0 = input "i0" : f32[2,5,7,12]
  %1 = input "i1" : f32[12]
  %2 = input "i2" : f32[12]
  %3 = com.microsoft.GroupNorm(%0, %1, %2) {activation=1, channels_last=1, epsilon=f(0x1.4f8b58p-17), groups=3} : f32[2,5,7,12]  "" @ ""
  output %3
}
)"},
    {"residual_and_rms_norm", R"(graph "g" {
  %0 = input "i0" : f32[2,5,24]
  %1 = input "i1" : f32[2,5,24]
  %2 = input "i2" : f32[24]
  %3 = input "i3" : f32[24]
  %4, %5, %6, %7 = com.microsoft.SkipSimplifiedLayerNormalization(%0, %1, %2, %3) {epsilon=f(0x1.0c6f7ap-20)} : f32[2,5,24], f32[2,5,1], f32[2,5,1], f32[2,5,24]  "", "", "", "" @ ""
  output %4
  output %7
}
)"},
    {"dynamically_quantised_product", R"(graph "g" {
  %0 = input "i0" : f32[2,5,7]
  %1 = weight "i1" : u8[7,11]
  %2 = weight "i2" : f32[11]
  %3 = weight "i3" : u8[11]
  %4 = com.microsoft.DynamicQuantizeMatMul(%0, %1, %2, %3) : f32[2,5,11]  "" @ ""
  output %4
}
)"},
    {"quantised_sum", R"(graph "g" {
  %0 = input "i0" : u8[3,5,7]
  %1 = input "i3" : u8[5,7]
  %2 = const "" : f32[] {0x1.581062p-6}
  %3 = const "" : u8[] {120}
  %4 = const "" : f32[] {0x1.a9fbe8p-7}
  %5 = const "" : u8[] {140}
  %6 = const "" : f32[] {0x1.eb851ep-6}
  %7 = const "" : u8[] {110}
  %8 = com.microsoft.QLinearAdd(%0, %2, %3, %1, %4, %5, %6, %7) : u8[3,5,7]  "" @ ""
  output %8
}
)"},
    {"quantised_average_pool", R"(graph "g" {
  %0 = input "i0" : i8[2,9,7,3]
  %1 = const "" : f32[] {0x1.47ae14p-5}
  %2 = const "" : i8[] {-8}
  %3 = const "" : f32[] {0x1.eb851ep-6}
  %4 = const "" : i8[] {-18}
  %5 = com.microsoft.QLinearAveragePool(%0, %1, %2, %3, %4) {ceil_mode=1, channels_last=1, count_include_pad=1, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]} : i8[2,5,4,3]  "" @ ""
  output %5
}
)"},
    {"weights_of_four_bits", R"(graph "g" {
  %0 = input "i0" : f32[3,70]
  %1 = weight "i1" : u8[9,3,16]
  %2 = weight "i2" : f32[9,3]
  %3 = weight "i3" : u8[9,2]
  %4 = com.microsoft.MatMulNBits(%0, %1, %2, %3) {K=70, N=9, accuracy_level=0, bits=4, block_size=32} : f32[3,9]  "" @ ""
  output %4
}
)"},
    {"quantised_attention", R"(graph "g" {
  %0 = input "i0" : u8[2,5,10]
  %1 = input "i1" : u8[10,36]
  %2 = input "i2" : f32[36]
  %3 = input "i3" : f32[]
  %4 = input "i4" : f32[]
  %5 = input "i5" : i32[2]
  %6 = input "i6" : u8[]
  %7 = input "i7" : u8[]
  %8 = com.microsoft.QAttention(%0, %1, %2, %3, %4, %5, %6, %7) {num_heads=3, unidirectional=0} : f32[2,5,12]  "" @ ""
  output %8
}
)"},
    {"quantised_attention_behind_a_past", R"(graph "g" {
  %0 = input "i0" : u8[2,5,10]
  %1 = input "i1" : u8[10,36]
  %2 = input "i2" : f32[36]
  %3 = input "i3" : f32[]
  %4 = input "i4" : f32[]
  %5 = input "i5" : i32[2]
  %6 = input "i6" : u8[]
  %7 = input "i7" : u8[]
  %8 = input "i8" : f32[2,2,3,4,4]
  %9, %10 = com.microsoft.QAttention(%0, %1, %2, %3, %4, %5, %6, %7, %8) {num_heads=3, unidirectional=0} : f32[2,5,12], f32[2,2,3,9,4]  "", "" @ ""
  output %9
  output %10
}
)"},
    {"quantised_lstm", R"(graph "g" {
  %0 = input "x" : f32[4,2,6]
  %1 = input "w" : i8[2,6,20]
  %2 = input "r" : u8[2,5,20]
  %3 = input "b" : f32[2,40]
  %4 = input "h" : f32[2,2,5]
  %5 = input "ws" : f32[2]
  %6 = input "rs" : f32[2,20]
  %7 = input "rz" : u8[2,20]
  %8, %9 = com.microsoft.DynamicQuantizeLSTM(%0, %1, %2, %3, %4, -, -, %5, -, %6, %7) {direction="bidirectional", hidden_size=5} : f32[4,2,2,5], f32[2,2,5]  "", "" @ ""
  output %8
  output %9
}
)"},
    {"quantised_mean", R"(graph "g" {
  %0 = input "x" : u8[3,5,7]
  %1 = input "s" : f32[]
  %2 = input "z" : u8[]
  %3 = input "ys" : f32[]
  %4 = input "yz" : u8[]
  %5 = com.microsoft.QLinearReduceMean(%0, %1, %2, %3, %4) {axes=[1], keepdims=0} : u8[3,7]  "" @ ""
  output %5
}
)"},
    {"channels_last_convolution", R"(graph "g" {
  %0 = input "x" : f32[2,9,7,4]
  %1 = weight "w" : f32[6,3,3,2]
  %2 = weight "b" : f32[6]
  %3 = com.microsoft.NhwcConv(%0, %1, %2) {group=2, pads=[1, 1, 1, 1], strides=[2, 1]} : f32[2,5,7,6]  "" @ ""
  output %3
}
)"},
    {"bits_of_integers", R"(graph "g" {
  %0 = input "x" : i16[3,5]
  %1 = input "m" : bool[3,5]
  %2 = BitCast(%0) {to=4} : u16[3,5]  "" @ ""
  %3 = BitCast(%1) {to=3} : i8[3,5]  "" @ ""
  output %2
  output %3
}
)"},
    {"quantised_concat", R"(graph "g" {
  %0 = input "i2" : u8[2,3,5]
  %1 = input "i5" : u8[2,4,5]
  %2 = input "i8" : u8[2,1,5]
  %3 = const "" : f32[] {0x1.eb851ep-6}
  %4 = const "" : u8[] {110}
  %5 = const "" : f32[] {0x1.47ae14p-6}
  %6 = const "" : u8[] {100}
  %7 = const "" : f32[] {0x1.eb851ep-6}
  %8 = const "" : u8[] {110}
  %9 = const "" : f32[] {0x1.99999ap-5}
  %10 = const "" : u8[] {127}
  %11 = com.microsoft.QLinearConcat(%3, %4, %0, %5, %6, %1, %7, %8, %2, %9, %10) {axis=1} : u8[2,8,5]  "" @ ""
  output %11
}
)"},
    {"nothing_beside_something", R"(graph "g" {
  %0 = input "x" : f32[17179869184,0]
  %1 = input "y" : f32[5,7]
  %2 = Sin(%0) : f32[17179869184,0]  "" @ ""
  %3 = Softmax(%2) {axis=0} : f32[17179869184,0]  "" @ ""
  %4 = ReduceSum(%3) {axes=[0, 1], keepdims=0} : f32[]  "" @ ""
  %5 = Add(%1, %4) : f32[5,7]  "" @ ""
  output %3
  output %5
}
)"},
};

}  // namespace fusion
