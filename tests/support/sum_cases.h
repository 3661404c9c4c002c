#pragma once

#include "tests/support/stream_case.h"

namespace fusion {

/// Products, moments, norms, windows: no exponentials.
inline constexpr StreamCase kSumCases[] = {
    {"variance", 12, Streamed::kUpdateThenAggregate, "", R"(graph "g" {
  %0 = input "x" : f32[10,12]
  %1 = ReduceMean(%0) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %2 = Sub(%0, %1) : f32[10,12]  "" @ ""
  %3 = Mul(%2, %2) : f32[10,12]  "" @ ""
  %4 = ReduceMean(%3) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  output %4
}
)"},
    {"third_moment_and_covariance", 12, Streamed::kUpdateThenAggregate, "", R"(graph "g" {
  %0 = input "x" : f32[10,12]
  %1 = input "y" : f32[10,12]
  %2 = ReduceMean(%0) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %3 = ReduceMean(%1) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %4 = Sub(%0, %2) : f32[10,12]  "" @ ""
  %5 = Sub(%1, %3) : f32[10,12]  "" @ ""
  %6 = Mul(%4, %5) : f32[10,12]  "" @ ""
  %7 = ReduceMean(%6) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %8 = const "" : f32[] {3}
  %9 = Pow(%4, %8) : f32[10,12]  "" @ ""
  %10 = ReduceMean(%9) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %11 = Add(%7, %10) : f32[10,1]  "" @ ""
  output %11
}
)"},
    {"rms_norm_gemm", 12, Streamed::kSimpleAggregate, "", R"(graph "g" {
  %0 = input "x" : f32[10,12]
  %1 = weight "g" : f32[12]
  %2 = weight "w" : f32[12,6]
  %3 = Mul(%0, %0) : f32[10,12]  "" @ ""
  %4 = ReduceMean(%3) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %5 = const "" : f32[] {0x1p-17}
  %6 = Add(%4, %5) : f32[10,1]  "" @ ""
  %7 = Sqrt(%6) : f32[10,1]  "" @ ""
  %8 = Div(%0, %7) : f32[10,12]  "" @ ""
  %9 = Mul(%8, %1) : f32[10,12]  "" @ ""
  %10 = MatMul(%9, %2) : f32[10,6]  "" @ ""
  output %10
}
)"},
    {"layer_norm_gemm", 12, Streamed::kUpdateThenAggregate, "", R"(graph "g" {
  %0 = input "x" : f32[10,12]
  %1 = weight "g" : f32[12]
  %2 = weight "b" : f32[12]
  %3 = weight "w" : f32[12,6]
  %4 = LayerNormalization(%0, %1, %2) {axis=-1} : f32[10,12]  "" @ ""
  %5 = MatMul(%4, %3) : f32[10,6]  "" @ ""
  output %5
}
)"},
    {"two_gemms", 12, Streamed::kSimpleAggregate, "", R"(graph "g" {
  %0 = input "x" : f32[10,4]
  %1 = weight "w" : f32[4,12]
  %2 = weight "u" : f32[12,6]
  %3 = MatMul(%0, %1) : f32[10,12]  "" @ ""
  %4 = Relu(%3) : f32[10,12]  "" @ ""
  %5 = MatMul(%4, %2) : f32[10,6]  "" @ ""
  output %5
}
)"},
    {"gated_mlp", 12, Streamed::kSimpleAggregate, "", R"(graph "g" {
  %0 = input "x" : f32[10,4]
  %1 = weight "gate" : f32[4,12]
  %2 = weight "up" : f32[4,12]
  %3 = weight "down" : f32[12,6]
  %4 = MatMul(%0, %1) : f32[10,12]  "" @ ""
  %5 = MatMul(%0, %2) : f32[10,12]  "" @ ""
  %6 = Sigmoid(%4) : f32[10,12]  "" @ ""
  %7 = Mul(%4, %6) : f32[10,12]  "" @ ""
  %8 = Mul(%7, %5) : f32[10,12]  "" @ ""
  %9 = MatMul(%8, %3) : f32[10,6]  "" @ ""
  output %9
}
)"},
    // A maximum of what is scaled by another reduction: the scale is not negative, so it waits.
    {"maximum_of_normalised", 12, Streamed::kSimpleAggregate, "", R"(graph "g" {
  %0 = input "x" : f32[10,12]
  %1 = ReduceL2(%0) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %2 = Div(%0, %1) : f32[10,12]  "" @ ""
  %3 = Abs(%2) : f32[10,12]  "" @ ""
  %4 = ReduceMax(%3) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  output %4
}
)"},
    {"maximum_of_shifted", 12, Streamed::kSimpleAggregate, "infinities", R"(graph "g" {
  %0 = input "x" : f32[10,12]
  %1 = ReduceMin(%0) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %2 = Sub(%0, %1) : f32[10,12]  "" @ ""
  %3 = ReduceMax(%2) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  output %3
}
)"},
    // Gates of one product, taken apart again.
    {"lstm_cell", 12, Streamed::kSimpleAggregate, "", R"(graph "g" {
  %0 = input "x" : f32[10,12]
  %1 = input "c" : f32[10,5]
  %2 = weight "w" : f32[12,20]
  %3 = weight "b" : f32[20]
  %4 = MatMul(%0, %2) : f32[10,20]  "" @ ""
  %5 = Add(%4, %3) : f32[10,20]  "" @ ""
  %6 = Slice(%5) {axes=[1], ends=[5], starts=[0]} : f32[10,5]  "" @ ""
  %7 = Slice(%5) {axes=[1], ends=[10], starts=[5]} : f32[10,5]  "" @ ""
  %8 = Slice(%5) {axes=[1], ends=[15], starts=[10]} : f32[10,5]  "" @ ""
  %9 = Slice(%5) {axes=[1], ends=[20], starts=[15]} : f32[10,5]  "" @ ""
  %10 = Sigmoid(%6) : f32[10,5]  "" @ ""
  %11 = Sigmoid(%7) : f32[10,5]  "" @ ""
  %12 = Tanh(%8) : f32[10,5]  "" @ ""
  %13 = Sigmoid(%9) : f32[10,5]  "" @ ""
  %14 = Mul(%11, %1) : f32[10,5]  "" @ ""
  %15 = Mul(%10, %12) : f32[10,5]  "" @ ""
  %16 = Add(%14, %15) : f32[10,5]  "" @ ""
  %17 = Tanh(%16) : f32[10,5]  "" @ ""
  %18 = Mul(%13, %17) : f32[10,5]  "" @ ""
  output %18
  output %16
}
)"},
    // Along the channels.
    {"conv_bias_leaky_relu", 12, Streamed::kSimpleAggregate, "", R"(graph "g" {
  %0 = input "x" : f32[2,12,7,9]
  %1 = weight "w" : f32[5,12,3,3]
  %2 = weight "b" : f32[5]
  %3 = Conv(%0, %1, %2) {pads=[1, 1, 1, 1]} : f32[2,5,7,9]  "" @ ""
  %4 = LeakyRelu(%3) {alpha=f(0x1.99999ap-4)} : f32[2,5,7,9]  "" @ ""
  output %4
}
)"},
    {"conv_bn_relu_add", 12, Streamed::kSimpleAggregate, "", R"(graph "g" {
  %0 = input "x" : f32[2,12,7,9]
  %1 = weight "w" : f32[5,12,3,3]
  %2 = weight "scale" : f32[5]
  %3 = weight "bias" : f32[5]
  %4 = weight "mean" : f32[5]
  %5 = weight "var" : f32[5]
  %6 = input "skip" : f32[2,5,5,7]
  %7 = Conv(%0, %1) : f32[2,5,5,7]  "" @ ""
  %8 = BatchNormalization(%7, %2, %3, %4, %5) : f32[2,5,5,7]  "" @ ""
  %9 = Relu(%8) : f32[2,5,5,7]  "" @ ""
  %10 = Add(%9, %6) : f32[2,5,5,7]  "" @ ""
  output %10
}
)"},
    // Along the places: windows of neighbours overlap in the input only.
    {"pool", 12, Streamed::kStream, "", R"(graph "g" {
  %0 = input "x" : f32[2,3,7,14]
  %1 = MaxPool(%0) {kernel_shape=[3, 3]} : f32[2,3,5,12]  "" @ ""
  output %1
}
)"},
    // The sums so far are those of another dim; finished, they are all there.
    {"cumulative_gemm", 12, Streamed::kSimpleAggregate, "", R"(graph "g" {
  %0 = input "x" : f32[10,12]
  %1 = input "v" : f32[11,6]
  %2 = const "" : f32[] {0}
  %3 = Range() {delta=tensor i64[] {1}, limit=tensor i64[] {11}, start=tensor i64[] {0}} : i64[11]  "" @ ""
  %4 = Range() {delta=tensor i64[] {1}, limit=tensor i64[] {12}, start=tensor i64[] {0}} : i64[12]  "" @ ""
  %5 = Unsqueeze(%3) {axes=[1]} : i64[11,1]  "" @ ""
  %6 = LessOrEqual(%4, %5) : bool[11,12]  "" @ ""
  %7 = Unsqueeze(%0) {axes=[1]} : f32[10,1,12]  "" @ ""
  %8 = Where(%6, %7, %2) : f32[10,11,12]  "" @ ""
  %9 = ReduceSum(%8) {axes=[2], keepdims=0} : f32[10,11]  "" @ ""
  %10 = Tanh(%9) : f32[10,11]  "" @ ""
  %11 = MatMul(%10, %1) : f32[10,6]  "" @ ""
  output %11
}
)",
     1},
    // A step of a scan: what is computed at one place is used at the next.
    {"sums_of_neighbours", 12, Streamed::kRefused, "crossing", R"(graph "g" {
  %0 = input "x" : f32[10,12]
  %1 = input "v" : f32[12,6]
  %2 = Exp(%0) : f32[10,12]  "" @ ""
  %3 = Slice(%2) {axes=[1], ends=[11], starts=[0]} : f32[10,11]  "" @ ""
  %4 = Pad(%3) {pads=[0, 1, 0, 0]} : f32[10,12]  "" @ ""
  %5 = Add(%2, %4) : f32[10,12]  "" @ ""
  %6 = MatMul(%5, %1) : f32[10,6]  "" @ ""
  output %6
}
)"},
    // The linear moment moves with the same change of the centre as the one it is part of.
    {"squares_with_their_own_sum", 12, Streamed::kUpdateThenAggregate, "", R"(graph "g" {
  %0 = input "x" : f32[10,12]
  %1 = ReduceMean(%0) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %2 = Sub(%0, %1) : f32[10,12]  "" @ ""
  %3 = Mul(%2, %2) : f32[10,12]  "" @ ""
  %4 = ReduceSum(%3) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %5 = Add(%3, %4) : f32[10,12]  "" @ ""
  %6 = ReduceSum(%5) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  output %6
}
)"},
    // A product is a partial result of which others are made.
    {"centred_by_a_product", 12, Streamed::kUpdateThenAggregate, "", R"(graph "g" {
  %0 = input "x" : f32[10,12]
  %1 = input "w" : f32[12,1]
  %2 = ReduceMean(%0) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %3 = Add(%0, %2) : f32[10,12]  "" @ ""
  %4 = MatMul(%3, %1) : f32[10,1]  "" @ ""
  %5 = Sub(%3, %4) : f32[10,12]  "" @ ""
  %6 = ReduceSum(%5) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  output %6
}
)",
     0, 0, "unbounded-error"},
    // Before a mask lets something through, the mean is 0 / 0.
    {"masked_variance", 12, Streamed::kUpdateThenAggregate, "", R"(graph "g" {
  %0 = input "x" : f32[10,12]
  %1 = input "mask" : bool[10,12]
  %2 = const "" : f32[] {0}
  %3 = Where(%1, %0, %2) : f32[10,12]  "" @ ""
  %4 = Cast(%1) {to="f32"} : f32[10,12]  "" @ ""
  %5 = ReduceSum(%3) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %6 = ReduceSum(%4) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %7 = Div(%5, %6) : f32[10,1]  "" @ ""
  %8 = Sub(%0, %7) : f32[10,12]  "" @ ""
  %9 = Mul(%8, %8) : f32[10,12]  "" @ ""
  %10 = Where(%1, %9, %2) : f32[10,12]  "" @ ""
  %11 = ReduceSum(%10) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  output %11
}
)",
     0, 0, nullptr, "unbounded-error"},
    // What is masked takes another value, whatever the factor is.
    {"shares_of_some", 12, Streamed::kSimpleAggregate, "", R"(graph "g" {
  %0 = input "x" : f32[10,12]
  %1 = input "mask" : bool[10,12]
  %2 = const "" : f32[] {-10000}
  %3 = ReduceL1(%0) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %4 = Div(%0, %3) : f32[10,12]  "" @ ""
  %5 = Where(%1, %4, %2) : f32[10,12]  "" @ ""
  %6 = ReduceSum(%5) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  output %6
}
)"},
    // Squares of the distance from what is no mean: they cancel, and more the longer the dim is.
    {"squares_about_a_sum", 12, Streamed::kSimpleAggregate, "unbounded-error", R"(graph "g" {
  %0 = input "x" : f32[10,12]
  %1 = ReduceSum(%0) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %2 = Sub(%0, %1) : f32[10,12]  "" @ ""
  %3 = Mul(%2, %2) : f32[10,12]  "" @ ""
  %4 = ReduceSum(%3) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  output %4
}
)"},
    // A centre with a pole where partial sums may come.
    {"distance_from_a_reciprocal", 12, Streamed::kSimpleAggregate, "unbounded-error", R"(graph "g" {
  %0 = input "x" : f32[10,12]
  %1 = input "w" : f32[12,1]
  %2 = ReduceSum(%0) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %3 = Reciprocal(%2) : f32[10,1]  "" @ ""
  %4 = Sub(%0, %3) : f32[10,12]  "" @ ""
  %5 = MatMul(%4, %1) : f32[10,1]  "" @ ""
  output %5
}
)"},
    // About the mean that weights make; about the larger of two maxima.
    {"weighted_variance", 12, Streamed::kUpdateThenAggregate, "", R"(graph "g" {
  %0 = input "x" : f32[10,12]
  %1 = input "y" : f32[10,12]
  %2 = Sigmoid(%1) : f32[10,12]  "" @ ""
  %3 = Mul(%2, %0) : f32[10,12]  "" @ ""
  %4 = ReduceSum(%3) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %5 = ReduceSum(%2) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %6 = Div(%4, %5) : f32[10,1]  "" @ ""
  %7 = Sub(%0, %6) : f32[10,12]  "" @ ""
  %8 = Mul(%7, %7) : f32[10,12]  "" @ ""
  %9 = Mul(%8, %2) : f32[10,12]  "" @ ""
  %10 = ReduceSum(%9) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  output %10
}
)",
     0, 0, nullptr, "unbounded-error"},
    {"quantise_gemm", 12, Streamed::kRefused, "rounding", R"(graph "g" {
  %0 = input "x" : f32[10,4]
  %1 = weight "w" : f32[4,12]
  %2 = weight "u" : f32[12,6]
  %3 = MatMul(%0, %1) : f32[10,12]  "" @ ""
  %4 = Abs(%3) : f32[10,12]  "" @ ""
  %5 = ReduceMax(%4) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %6 = Div(%3, %5) : f32[10,12]  "" @ ""
  %7 = Round(%6) : f32[10,12]  "" @ ""
  %8 = MatMul(%7, %2) : f32[10,6]  "" @ ""
  output %8
}
)"},
    // Of an input the scale can be found first: it is read twice.
    {"quantise_gemm_of_an_input", 12, Streamed::kSimpleAggregate, "rounding", R"(graph "g" {
  %0 = input "x" : f32[10,12]
  %1 = weight "w" : f32[12,6]
  %2 = Abs(%0) : f32[10,12]  "" @ ""
  %3 = ReduceMax(%2) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %4 = Div(%0, %3) : f32[10,12]  "" @ ""
  %5 = Round(%4) : f32[10,12]  "" @ ""
  %6 = MatMul(%5, %1) : f32[10,6]  "" @ ""
  output %6
}
)"},
    {"roots_of_shares", 12, Streamed::kSimpleAggregate, "", R"(graph "g" {
  %0 = input "x" : f32[10,12]
  %1 = input "v" : f32[12,6]
  %2 = Abs(%0) : f32[10,12]  "" @ ""
  %3 = ReduceSum(%2) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %4 = Div(%2, %3) : f32[10,12]  "" @ ""
  %5 = Sqrt(%4) : f32[10,12]  "" @ ""
  %6 = MatMul(%5, %1) : f32[10,6]  "" @ ""
  output %6
}
)"},
    {"tanh_of_normalised", 12, Streamed::kSimpleAggregate, "not-separable", R"(graph "g" {
  %0 = input "x" : f32[10,12]
  %1 = ReduceL2(%0) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %2 = Div(%0, %1) : f32[10,12]  "" @ ""
  %3 = Tanh(%2) : f32[10,12]  "" @ ""
  %4 = ReduceSum(%3) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  output %4
}
)"},
    {"product_of_normalised", 12, Streamed::kSimpleAggregate, "monoid", R"(graph "g" {
  %0 = input "x" : f32[10,12]
  %1 = ReduceL2(%0) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %2 = Div(%0, %1) : f32[10,12]  "" @ ""
  %3 = ReduceProd(%2) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  output %3
}
)"},
    // A row divided by its length, as f32 between two ops in f64: not rounded while it is on chip.
    {"lengths_of_rounded_rows", 12, Streamed::kSimpleAggregate, "", R"(graph "g" {
  %0 = input "x" : f64[10,12]
  %1 = input "w" : f64[12,7]
  %2 = Mul(%0, %0) : f64[10,12]  "" @ ""
  %3 = ReduceSum(%2) {axes=[1], keepdims=1} : f64[10,1]  "" @ ""
  %4 = Sqrt(%3) : f64[10,1]  "" @ ""
  %5 = Div(%0, %4) : f64[10,12]  "" @ ""
  %6 = Cast(%5) {to="f32"} : f32[10,12]  "" @ ""
  %7 = Cast(%6) {to="f64"} : f64[10,12]  "" @ ""
  %8 = MatMul(%7, %1) : f64[10,7]  "" @ ""
  output %8
}
)"},
};

}  // namespace fusion
