#pragma once

#include <string_view>

#include "core/smg/stream.h"

namespace fusion {

/// What must be derived when one dim of a graph is streamed.
struct StreamCase {
  const char* name;
  int64_t extent;  // of the dim: the only one of this extent
  Streamed::Kind kind;
  /// Code of the refusal; of a form that streams: of the one that would read its input once.
  const char* refusal;
  const char* graph;
  /// Functions of the coordinates that say which tiles matter.
  size_t needed = 0;
  /// Those that say so once what is masked by finite numbers underflows.
  size_t underflow = 0;
};

inline constexpr StreamCase kStreamCases[] = {
    {"attention", 12, Streamed::kUpdateThenAggregate, "", R"(graph "g" {
  %0 = input "q" : f32[10,4]
  %1 = input "k" : f32[4,12]
  %2 = input "v" : f32[12,6]
  %3 = MatMul(%0, %1) : f32[10,12]  "" @ ""
  %4 = Softmax(%3) {axis=-1} : f32[10,12]  "" @ ""
  %5 = MatMul(%4, %2) : f32[10,6]  "" @ ""
  output %5
}
)"},
    {"attention_scaled_with_finite_mask", 12, Streamed::kUpdateThenAggregate, "", R"(graph "g" {
  %0 = input "q" : f32[2,10,4]
  %1 = input "k" : f32[2,4,12]
  %2 = input "v" : f32[2,12,6]
  %3 = input "mask" : bool[10,12]
  %4 = const "" : f32[] {0x1.6p-2}
  %5 = const "" : f32[] {-10000}
  %6 = MatMul(%0, %1) : f32[2,10,12]  "" @ ""
  %7 = Mul(%6, %4) : f32[2,10,12]  "" @ ""
  %8 = Where(%3, %7, %5) : f32[2,10,12]  "" @ ""
  %9 = Softmax(%8) {axis=-1} : f32[2,10,12]  "" @ ""
  %10 = MatMul(%9, %2) : f32[2,10,6]  "" @ ""
  output %10
}
)"},
    {"attention_with_soft_cap_and_bias", 12, Streamed::kUpdateThenAggregate, "", R"(graph "g" {
  %0 = input "q" : f32[10,4]
  %1 = input "k" : f32[4,12]
  %2 = input "v" : f32[12,6]
  %3 = input "bias" : f32[10,12]
  %4 = const "" : f32[] {30}
  %5 = MatMul(%0, %1) : f32[10,12]  "" @ ""
  %6 = Div(%5, %4) : f32[10,12]  "" @ ""
  %7 = Tanh(%6) : f32[10,12]  "" @ ""
  %8 = Mul(%7, %4) : f32[10,12]  "" @ ""
  %9 = Add(%8, %3) : f32[10,12]  "" @ ""
  %10 = Softmax(%9) {axis=-1} : f32[10,12]  "" @ ""
  %11 = MatMul(%10, %2) : f32[10,6]  "" @ ""
  output %11
}
)"},
    // Base 2, the maximum of what is not yet scaled, sums of a broadcast, division last: the same
    // function.
    {"attention_in_disguise", 12, Streamed::kUpdateThenAggregate, "", R"(graph "g" {
  %0 = input "q" : f32[10,4]
  %1 = input "k" : f32[4,12]
  %2 = input "v" : f32[12,6]
  %3 = const "" : f32[] {0x1.7p-1}
  %4 = const "" : f32[] {2}
  %5 = MatMul(%0, %1) : f32[10,12]  "" @ ""
  %6 = ReduceMax(%5) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %7 = Sub(%6, %5) : f32[10,12]  "" @ ""
  %8 = Mul(%3, %7) : f32[10,12]  "" @ ""
  %9 = Neg(%8) : f32[10,12]  "" @ ""
  %10 = Pow(%4, %9) : f32[10,12]  "" @ ""
  %11 = ReduceSum(%10) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %12 = Reciprocal(%11) : f32[10,1]  "" @ ""
  %13 = Mul(%12, %10) : f32[10,12]  "" @ ""
  %14 = MatMul(%13, %2) : f32[10,6]  "" @ ""
  output %14
}
)"},
    {"attention_by_log_sum_exp", 12, Streamed::kUpdateThenAggregate, "", R"(graph "g" {
  %0 = input "q" : f32[10,4]
  %1 = input "k" : f32[4,12]
  %2 = input "v" : f32[12,6]
  %3 = MatMul(%0, %1) : f32[10,12]  "" @ ""
  %4 = LogSoftmax(%3) {axis=-1} : f32[10,12]  "" @ ""
  %5 = Exp(%4) : f32[10,12]  "" @ ""
  %6 = MatMul(%5, %2) : f32[10,6]  "" @ ""
  output %6
}
)"},
    {"attention_without_a_maximum", 12, Streamed::kSimpleAggregate, "", R"(graph "g" {
  %0 = input "q" : f32[10,4]
  %1 = input "k" : f32[4,12]
  %2 = input "v" : f32[12,6]
  %3 = MatMul(%0, %1) : f32[10,12]  "" @ ""
  %4 = Exp(%3) : f32[10,12]  "" @ ""
  %5 = ReduceSum(%4) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %6 = Div(%4, %5) : f32[10,12]  "" @ ""
  %7 = MatMul(%6, %2) : f32[10,6]  "" @ ""
  output %7
}
)"},
    {"linear_attention", 12, Streamed::kSimpleAggregate, "", R"(graph "g" {
  %0 = input "q" : f32[10,4]
  %1 = input "k" : f32[4,12]
  %2 = input "v" : f32[12,6]
  %3 = MatMul(%0, %1) : f32[10,12]  "" @ ""
  %4 = Sigmoid(%3) : f32[10,12]  "" @ ""
  %5 = ReduceL1(%4) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %6 = Div(%4, %5) : f32[10,12]  "" @ ""
  %7 = Relu(%6) : f32[10,12]  "" @ ""
  %8 = MatMul(%7, %2) : f32[10,6]  "" @ ""
  output %8
}
)"},
    // The probabilities leave the kernel: no tile of them is right before the last one came.
    {"attention_that_returns_its_probabilities", 12, Streamed::kRefused, "needs-finished-reduction",
     R"(graph "g" {
  %0 = input "q" : f32[10,4]
  %1 = input "k" : f32[4,12]
  %2 = input "v" : f32[12,6]
  %3 = MatMul(%0, %1) : f32[10,12]  "" @ ""
  %4 = Softmax(%3) {axis=-1} : f32[10,12]  "" @ ""
  %5 = MatMul(%4, %2) : f32[10,6]  "" @ ""
  output %5
  output %4
}
)"},
    {"softmax_of_two_inputs", 12, Streamed::kUpdateThenAggregate, "", R"(graph "g" {
  %0 = input "x" : f32[10,12]
  %1 = input "y" : f32[10,12]
  %2 = input "v" : f32[12,6]
  %3 = ReduceMax(%0) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %4 = ReduceMax(%1) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %5 = Max(%3, %4) : f32[10,1]  "" @ ""
  %6 = Sub(%0, %5) : f32[10,12]  "" @ ""
  %7 = Sub(%1, %5) : f32[10,12]  "" @ ""
  %8 = Exp(%6) : f32[10,12]  "" @ ""
  %9 = Exp(%7) : f32[10,12]  "" @ ""
  %10 = Add(%8, %9) : f32[10,12]  "" @ ""
  %11 = ReduceSum(%10) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %12 = Div(%10, %11) : f32[10,12]  "" @ ""
  %13 = MatMul(%12, %2) : f32[10,6]  "" @ ""
  output %13
}
)"},
    {"log_sum_exp", 12, Streamed::kUpdateThenAggregate, "", R"(graph "g" {
  %0 = input "x" : f32[10,12]
  %1 = ReduceMax(%0) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %2 = Sub(%0, %1) : f32[10,12]  "" @ ""
  %3 = Exp(%2) : f32[10,12]  "" @ ""
  %4 = ReduceSum(%3) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %5 = Log(%4) : f32[10,1]  "" @ ""
  %6 = Add(%5, %1) : f32[10,1]  "" @ ""
  output %6
}
)"},
    // Three reductions, each of what the ones before it gave.
    {"entropy_like_chain", 12, Streamed::kUpdateThenAggregate, "", R"(graph "g" {
  %0 = input "x" : f32[10,12]
  %1 = ReduceMax(%0) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %2 = Sub(%0, %1) : f32[10,12]  "" @ ""
  %3 = Exp(%2) : f32[10,12]  "" @ ""
  %4 = ReduceSum(%3) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %5 = Div(%3, %4) : f32[10,12]  "" @ ""
  %6 = Mul(%5, %2) : f32[10,12]  "" @ ""
  %7 = ReduceSum(%6) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  output %7
}
)"},
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
    {"softmax_gemm", 12, Streamed::kUpdateThenAggregate, "", R"(graph "g" {
  %0 = input "x" : f32[10,12]
  %1 = weight "w" : f32[12,6]
  %2 = Softmax(%0) {axis=-1} : f32[10,12]  "" @ ""
  %3 = MatMul(%2, %1) : f32[10,6]  "" @ ""
  output %3
}
)"},
    {"gemm_softmax", 12, Streamed::kRefused, "needs-finished-reduction", R"(graph "g" {
  %0 = input "x" : f32[10,4]
  %1 = weight "w" : f32[4,12]
  %2 = MatMul(%0, %1) : f32[10,12]  "" @ ""
  %3 = Softmax(%2) {axis=-1} : f32[10,12]  "" @ ""
  output %3
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
    // The sum of every row has its own factor, so the sum of all has none.
    {"softmax_summed_over_all_rows", 12, Streamed::kRefused, "state-in-reduction", R"(graph "g" {
  %0 = input "q" : f32[10,4]
  %1 = input "k" : f32[4,12]
  %2 = MatMul(%0, %1) : f32[10,12]  "" @ ""
  %3 = ReduceMax(%2) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %4 = Sub(%2, %3) : f32[10,12]  "" @ ""
  %5 = Exp(%4) : f32[10,12]  "" @ ""
  %6 = ReduceSum(%5) {axes=[0, 1], keepdims=0} : f32[]  "" @ ""
  output %6
}
)"},
    // Tiles right of the diagonal hold nothing.
    {"causal_attention", 12, Streamed::kUpdateThenAggregate, "", R"(graph "g" {
  %0 = input "q" : f32[2,10,4]
  %1 = input "k" : f32[2,4,12]
  %2 = input "v" : f32[2,12,6]
  %3 = const "" : f32[] {-inf}
  %4 = Range() {delta=tensor i64[] {1}, limit=tensor i64[] {10}, start=tensor i64[] {0}} : i64[10]  "" @ ""
  %5 = Range() {delta=tensor i64[] {1}, limit=tensor i64[] {12}, start=tensor i64[] {0}} : i64[12]  "" @ ""
  %6 = Unsqueeze(%4) {axes=[1]} : i64[10,1]  "" @ ""
  %19 = LessOrEqual(%5, %6) : bool[10,12]  "" @ ""
  %20 = MatMul(%0, %1) : f32[2,10,12]  "" @ ""
  %21 = Where(%19, %20, %3) : f32[2,10,12]  "" @ ""
  %22 = Softmax(%21) {axis=-1} : f32[2,10,12]  "" @ ""
  %23 = MatMul(%22, %2) : f32[2,10,6]  "" @ ""
  output %23
}
)",
     1},
    // As exporters write it: what is masked underflows once a row has seen something larger.
    {"causal_attention_with_finite_mask", 12, Streamed::kUpdateThenAggregate, "", R"(graph "g" {
  %0 = input "q" : f32[2,10,4]
  %1 = input "k" : f32[2,4,12]
  %2 = input "v" : f32[2,12,6]
  %3 = const "" : f32[] {-10000}
  %4 = Range() {delta=tensor i64[] {1}, limit=tensor i64[] {10}, start=tensor i64[] {0}} : i64[10]  "" @ ""
  %5 = Range() {delta=tensor i64[] {1}, limit=tensor i64[] {12}, start=tensor i64[] {0}} : i64[12]  "" @ ""
  %6 = Unsqueeze(%4) {axes=[1]} : i64[10,1]  "" @ ""
  %19 = LessOrEqual(%5, %6) : bool[10,12]  "" @ ""
  %20 = MatMul(%0, %1) : f32[2,10,12]  "" @ ""
  %21 = Where(%19, %20, %3) : f32[2,10,12]  "" @ ""
  %22 = Softmax(%21) {axis=-1} : f32[2,10,12]  "" @ ""
  %23 = MatMul(%22, %2) : f32[2,10,6]  "" @ ""
  output %23
}
)",
     0, 1},
    // The lowest number there is: no rounding may take it for a score.
    {"causal_attention_with_lowest_mask", 12, Streamed::kUpdateThenAggregate, "", R"(graph "g" {
  %0 = input "q" : f32[2,10,4]
  %1 = input "k" : f32[2,4,12]
  %2 = input "v" : f32[2,12,6]
  %3 = const "" : f32[] {-0x1.fffffep+127}
  %4 = Range() {delta=tensor i64[] {1}, limit=tensor i64[] {10}, start=tensor i64[] {0}} : i64[10]  "" @ ""
  %5 = Range() {delta=tensor i64[] {1}, limit=tensor i64[] {12}, start=tensor i64[] {0}} : i64[12]  "" @ ""
  %6 = Unsqueeze(%4) {axes=[1]} : i64[10,1]  "" @ ""
  %19 = LessOrEqual(%5, %6) : bool[10,12]  "" @ ""
  %20 = MatMul(%0, %1) : f32[2,10,12]  "" @ ""
  %21 = Where(%19, %20, %3) : f32[2,10,12]  "" @ ""
  %22 = Softmax(%21) {axis=-1} : f32[2,10,12]  "" @ ""
  %23 = MatMul(%22, %2) : f32[2,10,6]  "" @ ""
  output %23
}
)",
     0, 1},
    // The first row is masked as a whole: uniform, so that no tile of it is idle.
    {"strictly_causal_attention_with_finite_mask", 12, Streamed::kUpdateThenAggregate, "", R"(graph "g" {
  %0 = input "q" : f32[2,10,4]
  %1 = input "k" : f32[2,4,12]
  %2 = input "v" : f32[2,12,6]
  %3 = const "" : f32[] {-10000}
  %4 = Range() {delta=tensor i64[] {1}, limit=tensor i64[] {10}, start=tensor i64[] {0}} : i64[10]  "" @ ""
  %5 = Range() {delta=tensor i64[] {1}, limit=tensor i64[] {12}, start=tensor i64[] {0}} : i64[12]  "" @ ""
  %6 = Unsqueeze(%4) {axes=[1]} : i64[10,1]  "" @ ""
  %19 = Less(%5, %6) : bool[10,12]  "" @ ""
  %20 = MatMul(%0, %1) : f32[2,10,12]  "" @ ""
  %21 = Where(%19, %20, %3) : f32[2,10,12]  "" @ ""
  %24 = const "" : f32[] {0x1p-1}
  %25 = Mul(%21, %24) : f32[2,10,12]  "" @ ""
  %22 = Softmax(%25) {axis=-1} : f32[2,10,12]  "" @ ""
  %23 = MatMul(%22, %2) : f32[2,10,6]  "" @ ""
  output %23
}
)",
     0, 1},
    // Neither do tiles that lie more than a window to the left.
    {"sliding_window_attention", 12, Streamed::kUpdateThenAggregate, "", R"(graph "g" {
  %0 = input "q" : f32[2,10,4]
  %1 = input "k" : f32[2,4,12]
  %2 = input "v" : f32[2,12,6]
  %3 = const "" : f32[] {-inf}
  %4 = Range() {delta=tensor i64[] {1}, limit=tensor i64[] {10}, start=tensor i64[] {0}} : i64[10]  "" @ ""
  %5 = Range() {delta=tensor i64[] {1}, limit=tensor i64[] {12}, start=tensor i64[] {0}} : i64[12]  "" @ ""
  %6 = Unsqueeze(%4) {axes=[1]} : i64[10,1]  "" @ ""
  %7 = LessOrEqual(%5, %6) : bool[10,12]  "" @ ""
  %8 = const "" : i64[] {3}
  %9 = Add(%5, %8) : i64[12]  "" @ ""
  %10 = Greater(%9, %6) : bool[10,12]  "" @ ""
  %19 = And(%7, %10) : bool[10,12]  "" @ ""
  %20 = MatMul(%0, %1) : f32[2,10,12]  "" @ ""
  %21 = Where(%19, %20, %3) : f32[2,10,12]  "" @ ""
  %22 = Softmax(%21) {axis=-1} : f32[2,10,12]  "" @ ""
  %23 = MatMul(%22, %2) : f32[2,10,6]  "" @ ""
  output %23
}
)",
     2},
    // A slope by distance on top of the causal mask.
    {"attention_with_linear_bias", 12, Streamed::kUpdateThenAggregate, "", R"(graph "g" {
  %0 = input "q" : f32[2,10,4]
  %1 = input "k" : f32[2,4,12]
  %2 = input "v" : f32[2,12,6]
  %3 = const "" : f32[] {-inf}
  %4 = Range() {delta=tensor i64[] {1}, limit=tensor i64[] {10}, start=tensor i64[] {0}} : i64[10]  "" @ ""
  %5 = Range() {delta=tensor i64[] {1}, limit=tensor i64[] {12}, start=tensor i64[] {0}} : i64[12]  "" @ ""
  %6 = Unsqueeze(%4) {axes=[1]} : i64[10,1]  "" @ ""
  %7 = Sub(%5, %6) : i64[10,12]  "" @ ""
  %8 = Cast(%7) {to="f32"} : f32[10,12]  "" @ ""
  %9 = const "" : f32[] {0x1p-2}
  %10 = Mul(%8, %9) : f32[10,12]  "" @ ""
  %11 = Greater(%5, %6) : bool[10,12]  "" @ ""
  %12 = Not(%11) : bool[10,12]  "" @ ""
  %13 = MatMul(%0, %1) : f32[2,10,12]  "" @ ""
  %14 = Add(%13, %10) : f32[2,10,12]  "" @ ""
  %15 = Where(%12, %14, %3) : f32[2,10,12]  "" @ ""
  %16 = Softmax(%15) {axis=-1} : f32[2,10,12]  "" @ ""
  %17 = MatMul(%16, %2) : f32[2,10,6]  "" @ ""
  output %17
}
)",
     1},
    {"causal_linear_attention", 12, Streamed::kSimpleAggregate, "", R"(graph "g" {
  %0 = input "q" : f32[10,4]
  %1 = input "k" : f32[4,12]
  %2 = input "v" : f32[12,6]
  %3 = MatMul(%0, %1) : f32[10,12]  "" @ ""
  %4 = Trilu(%3) {upper=0} : f32[10,12]  "" @ ""
  %5 = MatMul(%4, %2) : f32[10,6]  "" @ ""
  output %5
}
)",
     1},
    // Rounding does not commute with a scale that changes.
    // Two heads of queries share one of keys and values.
    {"grouped_query_attention", 12, Streamed::kUpdateThenAggregate, "", R"(graph "g" {
  %0 = input "q" : f32[4,10,5]
  %1 = input "k" : f32[2,1,5,12]
  %2 = input "v" : f32[2,1,12,6]
  %3 = Expand(%1) {shape=[2, 2, 5, 12]} : f32[2,2,5,12]  "" @ ""
  %4 = Reshape(%3) {shape=[4, 5, 12]} : f32[4,5,12]  "" @ ""
  %5 = Expand(%2) {shape=[2, 2, 12, 6]} : f32[2,2,12,6]  "" @ ""
  %6 = Reshape(%5) {shape=[4, 12, 6]} : f32[4,12,6]  "" @ ""
  %7 = MatMul(%0, %4) : f32[4,10,12]  "" @ ""
  %8 = Softmax(%7) {axis=-1} : f32[4,10,12]  "" @ ""
  %9 = MatMul(%8, %6) : f32[4,10,6]  "" @ ""
  output %9
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
)"},
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
)"},
    // The second mask hides rows in which the first one leaves nothing: 0, not 0 * infinity.
    {"attention_masked_twice", 12, Streamed::kUpdateThenAggregate, "", R"(graph "g" {
  %0 = input "x" : f32[10,12]
  %1 = input "mask" : bool[10,12]
  %2 = const "" : f32[] {-inf}
  %3 = const "" : f32[] {0}
  %4 = Where(%1, %0, %2) : f32[10,12]  "" @ ""
  %5 = Softmax(%4) {axis=-1} : f32[10,12]  "" @ ""
  %6 = Where(%1, %5, %3) : f32[10,12]  "" @ ""
  %7 = input "v" : f32[12,7]
  %8 = MatMul(%6, %7) : f32[10,7]  "" @ ""
  output %8
}
)"},
    // So does a mask of the distances from the maximum.
    {"sum_of_masked_exponentials", 12, Streamed::kUpdateThenAggregate, "", R"(graph "g" {
  %0 = input "x" : f32[10,12]
  %1 = input "mask" : bool[10,12]
  %2 = const "" : f32[] {-inf}
  %4 = Where(%1, %0, %2) : f32[10,12]  "" @ ""
  %5 = ReduceMax(%4) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %6 = Sub(%0, %5) : f32[10,12]  "" @ ""
  %7 = Where(%1, %6, %2) : f32[10,12]  "" @ ""
  %8 = Exp(%7) : f32[10,12]  "" @ ""
  %9 = ReduceSum(%8) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  output %9
}
)"},
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
)"},
    // Probabilities that are rounded between two products are not, while they are on chip.
    {"attention_of_halves_in_floats", 12, Streamed::kUpdateThenAggregate, "", R"(graph "g" {
  %0 = input "q" : f16[10,4]
  %1 = input "k" : f16[4,12]
  %2 = input "v" : f16[12,7]
  %3 = MatMul(%0, %1) : f16[10,12]  "" @ ""
  %4 = Cast(%3) {to="f32"} : f32[10,12]  "" @ ""
  %5 = Softmax(%4) {axis=-1} : f32[10,12]  "" @ ""
  %6 = Cast(%5) {to="f16"} : f16[10,12]  "" @ ""
  %7 = MatMul(%6, %2) : f16[10,7]  "" @ ""
  output %7
}
)"},
    // Bounded scores, of which all may be far below 0.
    {"attention_of_saturated_scores", 12, Streamed::kUpdateThenAggregate, "", R"(graph "g" {
  %0 = input "x" : f32[10,12]
  %1 = input "v" : f32[12,6]
  %2 = const "" : f32[] {200}
  %3 = Tanh(%0) : f32[10,12]  "" @ ""
  %4 = Mul(%3, %2) : f32[10,12]  "" @ ""
  %5 = Softmax(%4) {axis=-1} : f32[10,12]  "" @ ""
  %6 = MatMul(%5, %1) : f32[10,6]  "" @ ""
  output %6
}
)"},
    // A reciprocal does not keep its course past its pole.
    {"exponential_of_reciprocals", 12, Streamed::kRefused, "unbounded-update", R"(graph "g" {
  %0 = input "x" : f32[10,12]
  %1 = Abs(%0) : f32[10,12]  "" @ ""
  %2 = Reciprocal(%1) : f32[10,12]  "" @ ""
  %3 = ReduceMax(%1) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %4 = Reciprocal(%3) : f32[10,1]  "" @ ""
  %5 = Sub(%4, %2) : f32[10,12]  "" @ ""
  %6 = Exp(%5) : f32[10,12]  "" @ ""
  %7 = ReduceSum(%6) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  output %7
}
)"},
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
    {"masked_exponentials", 12, Streamed::kUpdateThenAggregate, "", R"(graph "g" {
  %0 = input "x" : f32[10,4]
  %1 = weight "w" : f32[4,12]
  %2 = input "mask" : bool[10,12]
  %3 = const "" : f32[] {0}
  %4 = MatMul(%0, %1) : f32[10,12]  "" @ ""
  %5 = ReduceMax(%4) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %6 = Sub(%4, %5) : f32[10,12]  "" @ ""
  %7 = Exp(%6) : f32[10,12]  "" @ ""
  %8 = Where(%2, %7, %3) : f32[10,12]  "" @ ""
  %9 = ReduceSum(%8) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %10 = Log(%9) : f32[10,1]  "" @ ""
  output %10
}
)"},
    {"maximum_of_logarithms", 12, Streamed::kRefused, "infinities", R"(graph "g" {
  %0 = input "x" : f32[10,12]
  %1 = Exp(%0) : f32[10,12]  "" @ ""
  %2 = ReduceSum(%1) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %3 = Div(%1, %2) : f32[10,12]  "" @ ""
  %4 = Log(%3) : f32[10,12]  "" @ ""
  %5 = ReduceMax(%4) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  output %5
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
    {"softmax_in_a_wider_type", 12, Streamed::kUpdateThenAggregate, "", R"(graph "g" {
  %0 = input "x" : f32[10,12]
  %1 = input "v" : f64[12,6]
  %2 = ReduceMax(%0) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %3 = Sub(%0, %2) : f32[10,12]  "" @ ""
  %4 = Cast(%3) {to="f64"} : f64[10,12]  "" @ ""
  %5 = Exp(%4) : f64[10,12]  "" @ ""
  %6 = ReduceSum(%5) {axes=[1], keepdims=1} : f64[10,1]  "" @ ""
  %7 = Div(%5, %6) : f64[10,12]  "" @ ""
  %8 = MatMul(%7, %1) : f64[10,6]  "" @ ""
  output %8
}
)"},
    {"exponentials_summed_in_a_wider_type", 12, Streamed::kUpdateThenAggregate, "",
     R"(graph "g" {
  %0 = input "q" : f32[10,4]
  %1 = input "k" : f32[4,12]
  %2 = MatMul(%0, %1) : f32[10,12]  "" @ ""
  %3 = ReduceMax(%2) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %4 = Sub(%2, %3) : f32[10,12]  "" @ ""
  %5 = Exp(%4) : f32[10,12]  "" @ ""
  %6 = Cast(%5) {to="f64"} : f64[10,12]  "" @ ""
  %7 = ReduceSum(%6) {axes=[1], keepdims=1} : f64[10,1]  "" @ ""
  output %7
}
)"},
    {"softmax_of_the_larger", 12, Streamed::kUpdateThenAggregate, "", R"(graph "g" {
  %0 = input "x" : f32[10,12]
  %1 = input "y" : f32[10,12]
  %2 = input "v" : f32[12,6]
  %3 = Max(%0, %1) : f32[10,12]  "" @ ""
  %4 = ReduceMax(%3) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %5 = Sub(%0, %4) : f32[10,12]  "" @ ""
  %6 = Sub(%1, %4) : f32[10,12]  "" @ ""
  %7 = Max(%5, %6) : f32[10,12]  "" @ ""
  %8 = Exp(%7) : f32[10,12]  "" @ ""
  %9 = ReduceSum(%8) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %10 = Div(%8, %9) : f32[10,12]  "" @ ""
  %11 = MatMul(%10, %2) : f32[10,6]  "" @ ""
  output %11
}
)"},
    // Separable, but before the first tile the maximum of exponentials has no logarithm.
    {"temperature_of_shares", 12, Streamed::kRefused, "unbounded-update", R"(graph "g" {
  %0 = input "x" : f32[10,12]
  %1 = Exp(%0) : f32[10,12]  "" @ ""
  %2 = ReduceMax(%1) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %3 = Div(%1, %2) : f32[10,12]  "" @ ""
  %4 = Log(%3) : f32[10,12]  "" @ ""
  %5 = const "" : f32[] {0x1p+1}
  %6 = Mul(%4, %5) : f32[10,12]  "" @ ""
  %7 = Exp(%6) : f32[10,12]  "" @ ""
  %8 = ReduceSum(%7) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  output %8
}
)"},
    // The mean is no bound: tiles so far may overflow where the whole does not.
    {"exponential_of_centred", 12, Streamed::kSimpleAggregate, "unbounded-update", R"(graph "g" {
  %0 = input "x" : f32[10,12]
  %1 = ReduceMean(%0) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %2 = Sub(%0, %1) : f32[10,12]  "" @ ""
  %3 = Exp(%2) : f32[10,12]  "" @ ""
  %4 = ReduceSum(%3) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  output %4
}
)"},
    // The maximum of something else bounds nothing.
    {"exponential_below_another_maximum", 12, Streamed::kSimpleAggregate, "unbounded",
     R"(graph "g" {
  %0 = input "x" : f32[10,12]
  %1 = input "y" : f32[10,12]
  %2 = Add(%0, %1) : f32[10,12]  "" @ ""
  %3 = ReduceMax(%2) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %4 = Sub(%0, %3) : f32[10,12]  "" @ ""
  %5 = Exp(%4) : f32[10,12]  "" @ ""
  %6 = ReduceSum(%5) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
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
};

}  // namespace fusion
