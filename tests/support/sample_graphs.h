#pragma once

namespace fusion {

struct SampleGraph {
  const char* name;
  const char* text;
};

/// Small graphs that a kernel each must compute right, in text form: what the models are made of,
/// at ragged sizes, and empty, scalar and integer tensors.
inline constexpr SampleGraph kSampleGraphs[] = {
    {"matmul_add_relu", R"(graph "g" {
  %0 = input "x" : f32[13,20]
  %1 = weight "w" : f32[20,50]
  %2 = weight "b" : f32[50]
  %3 = MatMul(%0, %1) : f32[13,50]  "" @ ""
  %4 = Add(%3, %2) : f32[13,50]  "" @ ""
  %5 = Relu(%4) : f32[13,50]  "" @ ""
  output %5
}
)"},
    {"attention_in_f16", R"(graph "g" {
  %0 = input "q" : f16[3,37,16]
  %1 = input "k" : f16[3,16,50]
  %2 = input "v" : f16[3,50,24]
  %3 = const "" : f16[] {0.25}
  %4 = MatMul(%0, %1) : f16[3,37,50]  "" @ ""
  %5 = Mul(%4, %3) : f16[3,37,50]  "" @ ""
  %6 = Softmax(%5) {axis=-1} : f16[3,37,50]  "" @ ""
  %7 = MatMul(%6, %2) : f16[3,37,24]  "" @ ""
  output %7
}
)"},
    {"layer_norm_in_bf16", R"(graph "g" {
  %0 = input "x" : bf16[29,40]
  %1 = weight "g" : bf16[40]
  %2 = weight "b" : bf16[40]
  %3 = LayerNormalization(%0, %1, %2) {axis=-1} : bf16[29,40]  "" @ ""
  output %3
}
)"},
    {"linear_in_f16", R"(graph "g" {
  %0 = input "x" : f16[13,20]
  %1 = weight "w" : f16[20,50]
  %2 = weight "b" : f16[50]
  %3 = MatMul(%0, %1) : f16[13,50]  "" @ ""
  %4 = Add(%3, %2) : f16[13,50]  "" @ ""
  %5 = Gelu(%4) : f16[13,50]  "" @ ""
  %6 = Transpose(%5) {perm=[1, 0]} : f16[50,13]  "" @ ""
  output %4
  output %6
}
)"},
    {"conv_in_bf16", R"(graph "g" {
  %0 = input "x" : bf16[2,3,9,11]
  %1 = weight "w" : bf16[5,3,3,3]
  %2 = weight "b" : bf16[5]
  %3 = Conv(%0, %1, %2) {pads=[1, 1, 1, 1]} : bf16[2,5,9,11]  "" @ ""
  %4 = MaxPool(%3) {kernel_shape=[2, 2], strides=[2, 2]} : bf16[2,5,4,5]  "" @ ""
  output %4
}
)"},
    {"gather_of_f16", R"(graph "g" {
  %0 = input "x" : f16[9,5]
  %1 = input "i" : i64[4]
  %2 = Gather(%0, %1) {axis=0} : f16[4,5]  "" @ ""
  %3 = Cast(%2) {to="i32"} : i32[4,5]  "" @ ""
  %4 = ReduceMax(%0) {axes=[0], keepdims=0} : f16[5]  "" @ ""
  output %2
  output %3
  output %4
}
)"},
    {"functions_of_f64", R"(graph "g" {
  %0 = input "x" : f64[5,21]
  %1 = Softmax(%0) {axis=-1} : f64[5,21]  "" @ ""
  %2 = Erf(%0) : f64[5,21]  "" @ ""
  %3 = Add(%1, %2) : f64[5,21]  "" @ ""
  output %3
}
)"},
    {"gather_from_a_short_dim", R"(graph "g" {
  %0 = input "x" : f32[3,2]
  %1 = input "i" : i64[40]
  %2 = Gather(%0, %1) {axis=1} : f32[3,40]  "" @ ""
  output %2
}
)"},
    {"gather_at_one_place", R"(graph "g" {
  %0 = input "x" : f32[3,9,10]
  %1 = const "" : i64[] {-2}
  %2 = Gather(%0, %1) {axis=1} : f32[3,10]  "" @ ""
  %3 = Tanh(%2) : f32[3,10]  "" @ ""
  output %3
}
)"},
    {"gather_at_spaced_places", R"(graph "g" {
  %0 = input "x" : f32[3,9,10]
  %1 = const "" : i64[4] {1, 3, 5, 7}
  %2 = Gather(%0, %1) {axis=1} : f32[3,4,10]  "" @ ""
  %3 = Exp(%2) : f32[3,4,10]  "" @ ""
  output %3
}
)"},
    {"gather_at_known_places", R"(graph "g" {
  %0 = input "x" : f32[9,10]
  %1 = const "" : i64[3] {9, 0, -3}
  %2 = Gather(%0, %1) {axis=1} : f32[9,3]  "" @ ""
  %3 = Exp(%2) : f32[9,3]  "" @ ""
  output %3
}
)"},
    {"gather_of_a_constant", R"(graph "g" {
  %0 = const "" : f32[1] {1.5}
  %1 = input "ids" : i64[5]
  %2 = Gather(%0, %1) {axis=0} : f32[5]  "" @ ""
  %3 = Exp(%2) : f32[5]  "" @ ""
  output %3
}
)"},
    {"zeros_of_both_signs", R"(graph "g" {
  %0 = input "x" : f32[21]
  %1 = const "" : f32[] {0}
  %2 = const "" : f32[] {-0.0}
  %3 = const "" : f32[] {1}
  %4 = const "" : f32[] {-1}
  %5 = Greater(%0, %1) : bool[21]  "" @ ""
  %6 = Where(%5, %1, %2) : f32[21]  "" @ ""
  %7 = Reciprocal(%6) : f32[21]  "" @ ""
  %8 = Min(%7, %3) : f32[21]  "" @ ""
  %9 = Max(%8, %4) : f32[21]  "" @ ""
  output %9
}
)"},
    {"one_by_one", R"(graph "g" {
  %0 = input "x" : f32[1,1]
  %1 = weight "w" : f32[1,1]
  %2 = MatMul(%0, %1) : f32[1,1]  "" @ ""
  %3 = Exp(%2) : f32[1,1]  "" @ ""
  output %3
}
)"},
    {"scalar", R"(graph "g" {
  %0 = input "x" : f32[]
  %1 = Tanh(%0) : f32[]  "" @ ""
  %2 = Mul(%1, %0) : f32[]  "" @ ""
  output %2
}
)"},
    {"empty", R"(graph "g" {
  %0 = input "x" : f32[0,5]
  %1 = weight "w" : f32[5,7]
  %2 = MatMul(%0, %1) : f32[0,7]  "" @ ""
  %3 = Relu(%2) : f32[0,7]  "" @ ""
  output %3
}
)"},
    {"empty_sum", R"(graph "g" {
  %0 = input "x" : f32[3,0]
  %1 = weight "w" : f32[0,7]
  %2 = MatMul(%0, %1) : f32[3,7]  "" @ ""
  %3 = Relu(%2) : f32[3,7]  "" @ ""
  output %3
}
)"},
    {"chain", R"(graph "g" {
  %0 = input "x" : f32[3,37]
  %1 = input "y" : f32[37]
  %2 = Add(%0, %1) : f32[3,37]  "" @ ""
  %3 = Sigmoid(%2) : f32[3,37]  "" @ ""
  %4 = Mul(%3, %2) : f32[3,37]  "" @ ""
  %5 = Tanh(%4) : f32[3,37]  "" @ ""
  %6 = Max(%5, %0) : f32[3,37]  "" @ ""
  %7 = Erf(%6) : f32[3,37]  "" @ ""
  %8 = Exp(%7) : f32[3,37]  "" @ ""
  output %8
}
)"},
    {"softmax_rows", R"(graph "g" {
  %0 = input "x" : f32[5,67]
  %1 = Softmax(%0) {axis=-1} : f32[5,67]  "" @ ""
  output %1
}
)"},
    {"softmax_columns", R"(graph "g" {
  %0 = input "x" : f32[67,21]
  %1 = Softmax(%0) {axis=0} : f32[67,21]  "" @ ""
  output %1
}
)"},
    {"layer_norm", R"(graph "g" {
  %0 = input "x" : f32[9,133]
  %1 = weight "g" : f32[133]
  %2 = weight "b" : f32[133]
  %3 = const "two" : f32[] {0x1p+1}
  %4 = const "eps" : f32[] {0x1p-20}
  %5 = ReduceMean(%0) {axes=[-1]} : f32[9,1]  "" @ ""
  %6 = Sub(%0, %5) : f32[9,133]  "" @ ""
  %7 = Pow(%6, %3) : f32[9,133]  "" @ ""
  %8 = ReduceMean(%7) {axes=[-1]} : f32[9,1]  "" @ ""
  %9 = Add(%8, %4) : f32[9,1]  "" @ ""
  %10 = Sqrt(%9) : f32[9,1]  "" @ ""
  %11 = Div(%6, %10) : f32[9,133]  "" @ ""
  %12 = Mul(%11, %1) : f32[9,133]  "" @ ""
  %13 = Add(%12, %2) : f32[9,133]  "" @ ""
  output %13
}
)"},
    {"gemm_layer_norm", R"(graph "g" {
  %0 = input "x" : f32[29,24]
  %1 = input "res" : f32[29,40]
  %2 = weight "w" : f32[24,40]
  %3 = weight "gamma" : f32[40]
  %4 = weight "beta" : f32[40]
  %5 = MatMul(%0, %2) : f32[29,40]  "" @ ""
  %6 = Add(%5, %1) : f32[29,40]  "" @ ""
  %7 = LayerNormalization(%6, %3, %4) {axis=-1} : f32[29,40]  "" @ ""
  output %7
}
)"},
    {"attention", R"(graph "g" {
  %0 = input "q" : f32[2,13,8]
  %1 = input "k" : f32[2,19,8]
  %2 = input "v" : f32[2,19,5]
  %3 = input "mask" : i64[2,19]
  %4 = const "scale" : f32[] {0x1p-2}
  %5 = const "one" : f32[] {0x1p+0}
  %6 = const "big" : f32[] {-0x1.388p+13}
  %7 = Unsqueeze(%3) {axes=[1]} : i64[2,1,19]  "" @ ""
  %8 = Cast(%7) {to="f32"} : f32[2,1,19]  "" @ ""
  %9 = Sub(%5, %8) : f32[2,1,19]  "" @ ""
  %10 = Mul(%9, %6) : f32[2,1,19]  "" @ ""
  %11 = Transpose(%1) {perm=[0, 2, 1]} : f32[2,8,19]  "" @ ""
  %12 = MatMul(%0, %11) : f32[2,13,19]  "" @ ""
  %13 = Mul(%12, %4) : f32[2,13,19]  "" @ ""
  %14 = Add(%13, %10) : f32[2,13,19]  "" @ ""
  %15 = Softmax(%14) {axis=-1} : f32[2,13,19]  "" @ ""
  %16 = MatMul(%15, %2) : f32[2,13,5]  "" @ ""
  output %16
}
)"},
    {"gated_mlp", R"(graph "g" {
  %0 = input "x" : f32[11,12]
  %1 = weight "wg" : f32[12,40]
  %2 = weight "wu" : f32[12,40]
  %3 = weight "wd" : f32[40,12]
  %4 = MatMul(%0, %1) : f32[11,40]  "" @ ""
  %5 = MatMul(%0, %2) : f32[11,40]  "" @ ""
  %6 = Sigmoid(%4) : f32[11,40]  "" @ ""
  %7 = Mul(%4, %6) : f32[11,40]  "" @ ""
  %8 = Mul(%7, %5) : f32[11,40]  "" @ ""
  %9 = MatMul(%8, %3) : f32[11,12]  "" @ ""
  %10 = Add(%9, %0) : f32[11,12]  "" @ ""
  output %10
}
)"},
    {"rope", R"(graph "g" {
  %0 = input "x" : f32[6,10]
  %1 = weight "w" : f32[10,48]
  %2 = input "angle" : f32[6,24]
  %3 = MatMul(%0, %1) : f32[6,48]  "" @ ""
  %4 = Reshape(%3) {shape=[6, 2, 24]} : f32[6,2,24]  "" @ ""
  %5 = Transpose(%4) {perm=[1, 0, 2]} : f32[2,6,24]  "" @ ""
  %6 = Slice(%5) {axes=[2], ends=[12], starts=[0]} : f32[2,6,12]  "" @ ""
  %7 = Slice(%5) {axes=[2], ends=[24], starts=[12]} : f32[2,6,12]  "" @ ""
  %8 = Neg(%7) : f32[2,6,12]  "" @ ""
  %9 = Concat(%8, %6) {axis=2} : f32[2,6,24]  "" @ ""
  %10 = Sin(%2) : f32[6,24]  "" @ ""
  %11 = Cos(%2) : f32[6,24]  "" @ ""
  %12 = Mul(%9, %10) : f32[2,6,24]  "" @ ""
  %13 = Mul(%5, %11) : f32[2,6,24]  "" @ ""
  %14 = Add(%12, %13) : f32[2,6,24]  "" @ ""
  output %14
}
)"},
    {"concat_rows", R"(graph "g" {
  %0 = input "a" : f32[2,3,9]
  %1 = input "b" : f32[2,4,9]
  %2 = Concat(%0, %1) {axis=1} : f32[2,7,9]  "" @ ""
  %3 = Exp(%2) : f32[2,7,9]  "" @ ""
  output %2
  output %3
}
)"},
    {"where_mask", R"(graph "g" {
  %0 = input "m" : bool[7,21]
  %1 = input "x" : f32[3,7,21]
  %2 = const "low" : f32[] {-0x1.dcd65p+29}
  %3 = Where(%0, %1, %2) : f32[3,7,21]  "" @ ""
  %4 = Softmax(%3) {axis=-1} : f32[3,7,21]  "" @ ""
  output %4
}
)"},
    {"integers", R"(graph "g" {
  %0 = input "a" : i64[5,19]
  %1 = input "b" : i64[5,19]
  %2 = Add(%0, %1) : i64[5,19]  "" @ ""
  %3 = Mul(%2, %2) : i64[5,19]  "" @ ""
  %4 = Div(%3, %0) : i64[5,19]  "" @ ""
  %5 = Greater(%4, %1) : bool[5,19]  "" @ ""
  %6 = Cast(%4) {to="i32"} : i32[5,19]  "" @ ""
  %7 = Cast(%5) {to="f32"} : f32[5,19]  "" @ ""
  %8 = ReduceSum(%3) {axes=[1]} : i64[5,1]  "" @ ""
  %9 = ReduceMax(%6) {axes=[0]} : i32[1,19]  "" @ ""
  output %5
  output %6
  output %7
  output %8
}
)"},
    {"gather_rows", R"(graph "g" {
  %0 = weight "table" : f32[9,33]
  %1 = input "ids" : i64[4]
  %2 = Gather(%0, %1) {axis=0} : f32[4,33]  "" @ ""
  %3 = Exp(%2) : f32[4,33]  "" @ ""
  output %3
}
)"},
    {"conv_bias_leaky_relu", R"(graph "g" {
  %0 = input "x" : f32[2,3,9,11]
  %1 = weight "w" : f32[5,3,3,3]
  %2 = weight "b" : f32[5]
  %3 = Conv(%0, %1, %2) {pads=[1, 1, 1, 1]} : f32[2,5,9,11]  "" @ ""
  %4 = LeakyRelu(%3) {alpha=f(0x1.99999ap-4)} : f32[2,5,9,11]  "" @ ""
  output %4
}
)"},
    {"conv_in_steps_with_gaps", R"(graph "g" {
  %0 = input "x" : f32[1,4,10,13]
  %1 = weight "w" : f32[6,4,2,3]
  %2 = Conv(%0, %1) {dilations=[1, 2], pads=[0, 1, 1, 2], strides=[2, 1]} : f32[1,6,5,12]  "" @ ""
  output %2
}
)"},
    {"conv_in_groups", R"(graph "g" {
  %0 = input "x" : f32[2,6,7,8]
  %1 = weight "w" : f32[4,3,3,3]
  %2 = Conv(%0, %1) {group=2} : f32[2,4,5,6]  "" @ ""
  output %2
}
)"},
    {"conv_of_each_channel", R"(graph "g" {
  %0 = input "x" : f32[1,5,9,10]
  %1 = weight "w" : f32[5,1,3,3]
  %2 = Conv(%0, %1) {group=5, pads=[1, 1, 1, 1], strides=[2, 2]} : f32[1,5,5,5]  "" @ ""
  %3 = Relu(%2) : f32[1,5,5,5]  "" @ ""
  output %3
}
)"},
    {"conv_of_a_conv", R"(graph "g" {
  %0 = input "x" : f32[1,3,20]
  %1 = weight "v" : f32[4,3,3]
  %2 = weight "w" : f32[2,4,3]
  %3 = Conv(%0, %1) {pads=[1, 1]} : f32[1,4,20]  "" @ ""
  %4 = Relu(%3) : f32[1,4,20]  "" @ ""
  %5 = Conv(%4, %2) {pads=[2, 0]} : f32[1,2,20]  "" @ ""
  output %5
}
)"},
    {"conv_of_a_volume", R"(graph "g" {
  %0 = input "x" : f32[1,2,5,6,7]
  %1 = weight "w" : f32[3,2,2,3,2]
  %2 = Conv(%0, %1) : f32[1,3,4,4,6]  "" @ ""
  output %2
}
)"},
    {"conv_with_a_computed_filter", R"(graph "g" {
  %0 = input "x" : f32[1,3,8,8]
  %1 = input "w" : f32[4,3,3,3]
  %2 = Tanh(%1) : f32[4,3,3,3]  "" @ ""
  %3 = Conv(%0, %2) : f32[1,4,6,6]  "" @ ""
  output %3
}
)"},
    {"conv_and_its_input", R"(graph "g" {
  %0 = input "x" : f32[1,6,7,7]
  %1 = weight "w" : f32[6,6,3,3]
  %2 = Conv(%0, %1) {pads=[1, 1, 1, 1]} : f32[1,6,7,7]  "" @ ""
  %3 = Add(%2, %0) : f32[1,6,7,7]  "" @ ""
  %4 = Relu(%3) : f32[1,6,7,7]  "" @ ""
  output %4
}
)"},
    // Halves that change places: rows of a loop over all of this would read what later ones sum.
    {"rotated_sums", R"(graph "g" {
  %0 = input "x" : f32[3,5,64]
  %1 = input "p" : f32[64]
  %2 = ReduceSum(%0) {axes=[1], keepdims=0} : f32[3,64]  "" @ ""
  %3 = Cos(%1) : f32[64]  "" @ ""
  %4 = Sin(%1) : f32[64]  "" @ ""
  %5 = Slice(%2) {axes=[1], ends=[32], starts=[0]} : f32[3,32]  "" @ ""
  %6 = Slice(%2) {axes=[1], ends=[64], starts=[32]} : f32[3,32]  "" @ ""
  %7 = Neg(%6) : f32[3,32]  "" @ ""
  %8 = Concat(%7, %5) {axis=1} : f32[3,64]  "" @ ""
  %9 = Mul(%2, %3) : f32[3,64]  "" @ ""
  %10 = Mul(%8, %4) : f32[3,64]  "" @ ""
  %11 = Add(%9, %10) : f32[3,64]  "" @ ""
  output %11
}
)"},
    {"max_pool", R"(graph "g" {
  %0 = input "x" : f32[1,3,9,9]
  %1 = MaxPool(%0) {kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]} : f32[1,3,5,5]  "" @ ""
  output %1
}
)"},
    {"average_pool", R"(graph "g" {
  %0 = input "x" : f32[1,3,8,9]
  %1 = AveragePool(%0) {kernel_shape=[2, 3], pads=[0, 1, 0, 1], strides=[2, 2]} : f32[1,3,4,5]  "" @ ""
  output %1
}
)"},
    {"einsum_of_two", R"(graph "g" {
  %0 = input "a" : f32[3,7,5]
  %1 = weight "b" : f32[3,11,5]
  %2 = Einsum(%0, %1) {equation="bij,bkj->kib"} : f32[11,7,3]  "" @ ""
  %3 = Relu(%2) : f32[11,7,3]  "" @ ""
  output %3
}
)"},
    {"einsum_of_three_with_broadcasting", R"(graph "g" {
  %0 = input "a" : f32[2,1,5,6]
  %1 = input "b" : f32[4,6]
  %2 = input "c" : f32[5]
  %3 = Einsum(%0, %1, %2) {equation="...jk,...k,j"} : f32[2,4]  "" @ ""
  output %3
}
)"},
    {"einsum_of_a_diagonal", R"(graph "g" {
  %0 = input "a" : f32[3,6,6]
  %1 = Einsum(%0) {equation="bii->bi"} : f32[3,6]  "" @ ""
  output %1
}
)"},
    {"argmax", R"(graph "g" {
  %0 = input "x" : f32[5,19,3]
  %1 = ArgMax(%0) {axis=1, keepdims=0} : i64[5,3]  "" @ ""
  output %1
}
)"},
    {"last_argmin_of_sums", R"(graph "g" {
  %0 = input "x" : f32[5,19]
  %1 = input "y" : f32[5,19]
  %2 = Add(%0, %1) : f32[5,19]  "" @ ""
  %3 = ArgMin(%2) {axis=-1, select_last_index=1} : i64[5,1]  "" @ ""
  output %3
}
)"},
    {"gather_elements", R"(graph "g" {
  %0 = input "x" : f32[7,6]
  %1 = input "i" : i64[4,6]
  %2 = GatherElements(%0, %1) : f32[4,6]  "" @ ""
  %3 = Exp(%2) : f32[4,6]  "" @ ""
  output %3
}
)"},
    {"gather_nd", R"(graph "g" {
  %0 = input "x" : f32[3,7,7,6]
  %1 = input "i" : i64[3,5,2]
  %2 = GatherND(%0, %1) {batch_dims=1} : f32[3,5,6]  "" @ ""
  output %2
}
)"},
    {"one_hot", R"(graph "g" {
  %0 = input "i" : i64[5,3]
  %1 = input "v" : f32[2]
  %2 = OneHot(%0, %1) {axis=1, depth=tensor i64[] {7}} : f32[5,7,3]  "" @ ""
  output %2
}
)"},
    {"hardmax", R"(graph "g" {
  %0 = input "x" : f32[5,19]
  %1 = Hardmax(%0) {axis=1} : f32[5,19]  "" @ ""
  output %1
}
)"},
    {"quantised_product", R"(graph "g" {
  %0 = input "x" : f32[5,20]
  %1 = weight "w" : i8[20,9]
  %2 = const "" : f32[] {0.0625}
  %3 = const "" : u8[] {128}
  %4 = QuantizeLinear(%0, %2, %3) : u8[5,20]  "" @ ""
  %5 = MatMulInteger(%4, %1, %3) : i32[5,9]  "" @ ""
  %6 = Cast(%5) {to="f32"} : f32[5,9]  "" @ ""
  output %6
}
)"},
    {"dequantised_columns", R"(graph "g" {
  %0 = input "x" : u8[5,20]
  %1 = input "s" : f32[20]
  %2 = input "z" : u8[20]
  %3 = DequantizeLinear(%0, %1, %2) {axis=1} : f32[5,20]  "" @ ""
  output %3
}
)"},
    {"identity_matrix_like", R"(graph "g" {
  %0 = input "x" : f32[4,7]
  %1 = EyeLike(%0) {k=2} : f32[4,7]  "" @ ""
  %2 = Add(%0, %1) : f32[4,7]  "" @ ""
  output %2
}
)"},
    {"max_pool_with_positions", R"(graph "g" {
  %0 = input "x" : f32[1,2,7,6]
  %1, %2 = MaxPool(%0) {kernel_shape=[3, 2], pads=[1, 0, 1, 1], storage_order=1, strides=[2, 2]} : f32[1,2,4,3], i64[1,2,4,3]  "", "" @ ""
  output %1
  output %2
}
)"},
    {"pool_of_norms", R"(graph "g" {
  %0 = input "x" : f32[1,3,8,9]
  %1 = LpPool(%0) {kernel_shape=[2, 3], p=3, pads=[0, 1, 0, 1], strides=[2, 2]} : f32[1,3,4,5]  "" @ ""
  output %1
}
)"},
    {"norms_of_channels", R"(graph "g" {
  %0 = input "x" : f32[2,3,5,4]
  %1 = GlobalLpPool(%0) : f32[2,3,1,1]  "" @ ""
  output %1
}
)"},
    {"inverse_dft", R"(graph "g" {
  %0 = input "x" : f32[3,12,2]
  %1 = DFT(%0) {inverse=1} : f32[3,12,2]  "" @ ""
  output %1
}
)"},
    {"half_of_a_dft_of_columns", R"(graph "g" {
  %0 = input "x" : f32[4,6,3,1]
  %1 = DFT(%0) {axis=1, onesided=1} : f32[4,4,3,2]  "" @ ""
  output %1
}
)"},
    {"stft", R"(graph "g" {
  %0 = input "x" : f32[2,40,1]
  %1 = input "window" : f32[8]
  %2 = STFT(%0, %1) {frame_step=4} : f32[2,9,5,2]  "" @ ""
  output %2
}
)"},
    {"scatter_adds_rows", R"(graph "g" {
  %0 = input "x" : f32[7,37]
  %1 = input "u" : f32[13,37]
  %2 = input "at" : i64[13,1]
  %3 = ScatterND(%0, %1, %2) {reduction="add"} : f32[7,37]  "" @ ""
  output %3
}
)"},
    {"scatter_of_two_columns", R"(graph "g" {
  %0 = input "x" : f32[5,4,19]
  %1 = input "u" : f32[23,19]
  %2 = input "at" : i64[23,2]
  %3 = ScatterND(%0, %1, %2) {reduction="mul"} : f32[5,4,19]  "" @ ""
  output %3
}
)"},
    {"scatter_lane_by_lane", R"(graph "g" {
  %0 = input "x" : f32[6,21]
  %1 = input "at" : i64[11,21]
  %2 = input "u" : f32[11,21]
  %3 = ScatterElements(%0, %1, %2) {axis=0, reduction="max"} : f32[6,21]  "" @ ""
  output %3
}
)"},
    {"scatter_along_rows", R"(graph "g" {
  %0 = input "x" : f32[3,9]
  %1 = input "at" : i64[3,40]
  %2 = input "u" : f32[3,40]
  %3 = ScatterElements(%0, %1, %2) {axis=1, reduction="min"} : f32[3,9]  "" @ ""
  output %3
}
)"},
    {"scatter_adds_all_to_one_element", R"(graph "g" {
  %0 = input "x" : f32[4]
  %1 = input "u" : f32[37]
  %2 = const "" : i64[1,1] {2}
  %3 = Expand(%2) {shape=[37,1]} : i64[37,1]  "" @ ""
  %4 = ScatterND(%0, %1, %3) {reduction="add"} : f32[4]  "" @ ""
  output %4
}
)"},
    {"scatter_of_the_largest_to_one_element", R"(graph "g" {
  %0 = input "x" : f32[3,4]
  %1 = const "" : i64[1,1] {1}
  %2 = Expand(%1) {shape=[3,70]} : i64[3,70]  "" @ ""
  %3 = input "u" : f32[3,70]
  %4 = ScatterElements(%0, %2, %3) {axis=1, reduction="max"} : f32[3,4]  "" @ ""
  output %4
}
)"},
    {"linear_attention_of_short_heads", R"(graph "g" {
  %0 = input "q" : f32[2,1,8]
  %1 = input "k" : f32[2,1,8]
  %2 = input "v" : f32[2,1,6]
  %3 = input "decay" : f32[2,1,2]
  %4 = input "beta" : f32[2,1,2]
  %5, %6 = LinearAttention(%0, %1, %2, -, %3, %4) {kv_num_heads=2, q_num_heads=2, update_rule="gated_delta"} : f32[2,1,6], f32[2,2,4,3]  "", "" @ ""
  output %5
  output %6
}
)"},
    {"long_sum_of_equal_terms", R"(graph "g" {
  %0 = input "x" : f32[1,16]
  %1 = Expand(%0) {shape=[40000,16]} : f32[40000,16]  "" @ ""
  %2 = ReduceSum(%1) {axes=[0], keepdims=0} : f32[16]  "" @ ""
  output %2
}
)"},
};

}  // namespace fusion
