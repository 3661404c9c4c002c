#pragma once

#include "tests/support/stream_case.h"

namespace fusion {

/// Attention, softmaxes and what else sums exponentials.
inline constexpr StreamCase kExponentialCases[] = {
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
    // Rows that the mask and the diagonal hide from every key are 0.
    {"attention_op_masked_and_causal", 12, Streamed::kUpdateThenAggregate, "", R"(graph "g" {
  %0 = input "q" : f32[2,3,10,5]
  %1 = input "k" : f32[2,3,12,5]
  %2 = input "v" : f32[2,3,12,6]
  %3 = input "m" : bool[10,12]
  %4 = Attention(%0, %1, %2, %3) {is_causal=1} : f32[2,3,10,6]  "" @ ""
  output %4
}
)",
     1},
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
    {"strictly_causal_attention_with_finite_mask", 12, Streamed::kUpdateThenAggregate, "",
     R"(graph "g" {
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
    {"sliding_window_to_both_sides", 12, Streamed::kUpdateThenAggregate, "", R"(graph "g" {
  %0 = input "q" : f32[2,10,4]
  %1 = input "k" : f32[2,4,12]
  %2 = input "v" : f32[2,12,6]
  %3 = const "" : f32[] {-inf}
  %4 = Range() {delta=tensor i64[] {1}, limit=tensor i64[] {10}, start=tensor i64[] {0}} : i64[10]  "" @ ""
  %5 = Range() {delta=tensor i64[] {1}, limit=tensor i64[] {12}, start=tensor i64[] {0}} : i64[12]  "" @ ""
  %8 = const "" : i64[] {3}
  %6 = Unsqueeze(%4) {axes=[1]} : i64[10,1]  "" @ ""
  %11 = Add(%6, %8) : i64[10,1]  "" @ ""
  %7 = LessOrEqual(%5, %11) : bool[10,12]  "" @ ""
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
};

}  // namespace fusion
