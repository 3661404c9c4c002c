#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <string_view>
#include <unordered_set>

#include "core/onnx/limits.h"
#include "core/onnx/tensor_proto.h"

namespace fusion {

/// Decides which constants (initialisers and tensors of Constant nodes) of a model's main graph
/// stay inline: their bytes are part of the graph. All others are weights, known only by name, type
/// and shape. Client (ReferenceWeights) and importer use the same rule: the plan does not depend on
/// which of them removes the weights.
///
/// A constant stays inline if it is
///   - of at most `limit_bytes`;
///   - of int64 or int32 and of rank 0 or 1 (shapes, axes, bounds), whatever its size;
///   - of bool or an integer type, of at most kInlineMaskLimitBytes, and used only as mask or
///   index.
///
/// A tensor is "used only as mask or index" if it is used, is not a graph output, and each use is
///   - an operand that selects or addresses: condition of Where; indices of Gather*, Scatter*;
///     shape or bound operands of Slice, Reshape, Expand, Tile, Pad, Split, Squeeze, Unsqueeze,
///     Reduce*, Range, ConstantOfShape, TopK, OneHot, Resize, CumSum, Trilu; Shape and Size;
///   - or an operand of an op on bools and integers, if its outputs are used only as mask or index
///     too. Such ops are: moves such as Slice, Gather, Reshape, Transpose, Expand, Concat;
///     comparisons; logic; arithmetic; reductions; Cast to an integer type or bool; Where (value
///     operands).
/// Every other use (MatMul, a Cast to a float type, calls of functions, names captured by
/// subgraphs, ops of other domains) makes it a weight. Example: a causal mask that is sliced and
/// used by Where stays inline; one that is cast and added is a weight.
///
/// Refers to the strings of `graph`, which must outlive it. Immutable: any thread. The constructor
/// is linear in the size of the graph.
class InlineRule {
 public:
  explicit InlineRule(const onnx::GraphProto& graph, int64_t limit_bytes = kInlineLimitBytes);

  /// Whether the constant `name` with this header stays inline.
  bool StaysInline(std::string_view name, const TensorHeader& header) const;

 private:
  int64_t limit_bytes_;
  std::unordered_set<std::string_view> used_;
  std::unordered_set<std::string_view> used_otherwise_;
};

}  // namespace fusion
