#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/op/body/expr.h"
#include "core/op/body/index_map.h"
#include "core/op/body/monoid.h"
#include "core/tensor/shape.h"

namespace fusion {

/// A type of the graph: element type and shape.
struct TensorType {
  DType dtype = DType::kF32;
  Shape shape;
  bool operator==(const TensorType&) const = default;
  /// "f32[8,64]".
  std::string ToString() const { return StrCat(DTypeName(dtype), shape.ToString()); }
  /// Inverse of ToString. InvalidArgument, with the position, also for a negative extent and for a
  /// tensor beyond the limits of core/tensor/shape.h; symbols are not looked up.
  static absl::StatusOr<TensorType> Parse(Lexer& in);
};

struct LoopAxis {
  std::string name;
  Dim extent;
  bool operator==(const LoopAxis&) const = default;
};

struct Read {
  IndexMap index;
  std::vector<Guard> guards;
  bool operator==(const Read&) const = default;
};

/// The meaning of a primitive op: an iteration space, where each input is read, a scalar expression
/// of the elements read (in<i>) and coordinates (axis(i)), an optional reduction over the axes that
/// the output lacks, and where the result is written. Everything else (shape, mappings, flops,
/// bytes, reference value, code) is derived from this.
///
///   c[m,n] = sum_k a[m,k] * b[k,n]:
///   {.axes = {m, n, k}, .reads = {[m, k], [k, n]}, .write = [m, n], .value = in0 * in1, .reduce =
///   sum}
///
/// Invariants (checked by Verify): every axis without `reduce` occurs in `write`; each write dim is
/// a mixed-radix number of distinct axes (so elements are written once and completely).
struct LoopBody {
  std::vector<LoopAxis> axes;
  std::vector<Read> reads;  // one per input
  IndexMap write;
  Expr value;
  std::optional<Monoid> reduce;

  DType dtype() const { return reduce ? reduce->result_type() : value.type(); }
  /// Axes that `write` lacks.
  std::vector<int> ReducedAxes() const;
  /// Type of the output, derived from `write` and the expression.
  TensorType OutputType() const;
  /// in0 at some index, unchanged: the op is a view of its input if it does not reduce.
  bool IsView() const;

  /// Checks the invariants, the axis and input numbers, and that reads stay inside inputs of these
  /// types.
  absl::Status Verify(const std::vector<TensorType>& inputs) const;

  bool operator==(const LoopBody&) const = default;
};

/// Replaces axis `axis` (extent E) by two, major (E / minor_extent) and minor; the minor one takes
/// the number `axis + 1` and later axes move up by one. E must be static and divisible.
LoopBody SplitAxis(const LoopBody& body, int axis, int64_t minor_extent);

}  // namespace fusion
