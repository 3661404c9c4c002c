#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <string_view>
#include <unordered_set>

#include "core/onnx/limits.h"
#include "core/onnx/tensor_proto.h"

namespace fusion {

/// Which constants (initialisers and tensors of Constant nodes) of a model's main graph are part of
/// the graph's meaning, so that their bytes travel with it, and which are weights, known by name,
/// type and shape alone. Client (ReferenceWeights) and importer ask the same question, so that it
/// does not matter who strips the weights.
///
/// Inline is a constant
///   - of at most `limit_bytes`;
///   - of int64 or int32 and of rank 0 or 1 (shapes, axes, bounds), whatever its size;
///   - of bool or an integer type, of at most 2 MiB, that is used, and only as mask or index.
///
/// "Only as mask or index" holds for a tensor that is no graph output and each of whose uses is
///   - a place where values select or address: condition of Where; indices of Gather*, Scatter*;
///     shape or bound operands of Slice, Reshape, Expand, Tile, Pad, Split, Squeeze, Unsqueeze,
///     Reduce*, Range, ConstantOfShape, TopK, OneHot, Resize, CumSum, Trilu; Shape and Size;
///   - or an operand of an op that stays among bools and integers (moves such as Slice, Gather,
///     Reshape, Transpose, Expand, Concat; comparisons; logic; arithmetic; reductions; Cast to an
///     integer type or bool; value operands of Where), whose outputs are themselves only used as
///     mask or index.
/// Every other use (MatMul, a Cast to a float type, calls of functions, names captured by
/// subgraphs, ops of other domains) makes it a weight. So a causal mask that is sliced and selects
/// stays inline, one that is cast and added does not.
///
/// Refers to the strings of `graph`, which must outlive it. Immutable: any thread. Linear in the
/// size of the graph.
class InlineRule {
 public:
  explicit InlineRule(const onnx::GraphProto& graph, int64_t limit_bytes = kInlineLimitBytes);

  bool StaysInline(std::string_view name, const TensorHeader& header) const;

 private:
  int64_t limit_bytes_;
  std::unordered_set<std::string_view> used_;
  std::unordered_set<std::string_view> used_otherwise_;
};

}  // namespace fusion
