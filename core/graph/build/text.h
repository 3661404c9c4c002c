#pragma once

#include <string>
#include <string_view>

#include "core/graph/graph.h"

namespace fusion {

/// The text form of a graph. ParseGraph(ToString(g)) prints as the same text.
///
///   graph "mlp" {
///     %0 = input "x" : f32[8,64]
///     %1 = weight "w" : f32[64,64]
///     %2 = const "half" : f32[] {0x1p-1}
///     %3 = MatMul(%0, %1) : f32[8,64]  "y" @ "fc"
///     %4, %5 = Split(%3) {axis=1} : f32[8,32], f32[8,32]  "a", "b" @ "split"
///     output %3
///     share input 1 output 2 dim 2 capacity 512
///   }
///
/// `share` refers to inputs and outputs by position. A symbol is declared before its use: symbol s0
/// "seq" min 1 max 512 multiple 1 likely [128]. `-` is an absent input.
std::string ToString(const Graph& graph);

/// The text form with the bytes of large constants replaced by their SHA-256. Short, and equal iff
/// the graphs are equal. For keys; it cannot be parsed.
std::string KeyText(const Graph& graph);

/// Inverse of ToString. Errors name line and column. The result satisfies Verify.
absl::StatusOr<Graph> ParseGraph(std::string_view text);

}  // namespace fusion
