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

/// Type of a tensor: element type and shape.
struct TensorType {
  DType dtype = DType::kF32;
  Shape shape;
  bool operator==(const TensorType&) const = default;
  /// "f32[8,64]".
  std::string ToString() const { return StrCat(DTypeName(dtype), shape.ToString()); }
  /// Inverse of ToString. InvalidArgument, with the position, also for a negative extent and for a
  /// tensor beyond the limits of core/tensor/shape.h. Accepts any symbol name.
  static absl::StatusOr<TensorType> Parse(Lexer& in);
};

/// One loop of an iteration space: 0 <= coordinate < extent.
struct LoopAxis {
  std::string name;
  Dim extent;
  bool operator==(const LoopAxis&) const = default;
};

/// How one input is read: one index per dim, where all guards hold.
struct Read {
  IndexMap index;
  std::vector<Guard> guards;
  bool operator==(const Read&) const = default;
};

/// The meaning of a primitive op: an iteration space; an index map for each input; a scalar
/// expression of the elements read (in<i>) and of coordinates (axis(i)); an optional reduction over
/// the axes that `write` lacks; an index map for the result. Everything else (shape, mappings,
/// flops, bytes, reference value, code) is derived from this.
///
///   c[m,n] = sum_k a[m,k] * b[k,n]:
///   {.axes = {m, n, k}, .reads = {[m, k], [k, n]}, .write = [m, n],
///    .value = in0 * in1, .reduce = sum}
///
/// Invariants (checked by Verify): without `reduce` every axis (except of extent 1) occurs in
/// `write`; each write dim is a mixed-radix number of distinct axes, so that every element of the
/// output is written exactly once.
struct LoopBody {
  std::vector<LoopAxis> axes;
  std::vector<Read> reads;  // one per input
  IndexMap write;
  Expr value;
  std::optional<Monoid> reduce;

  /// Element type of the output.
  DType dtype() const { return reduce ? reduce->result_type() : value.type(); }
  /// Axes that `write` lacks.
  std::vector<int> ReducedAxes() const;
  /// Type of the output, derived from `write` and the expression.
  TensorType OutputType() const;
  /// True if the output only moves elements of one input: no reduction, the value is in0, read
  /// without guards and without an indirect index.
  bool IsView() const;

  /// Checks the invariants, the axis and input numbers, and that reads stay inside inputs of these
  /// types. Indirect indices and symbolic extents are not checked. Errors are Internal.
  absl::Status Verify(const std::vector<TensorType>& inputs) const;

  bool operator==(const LoopBody&) const = default;
};

/// Splits axis `axis` of extent E into a major axis (E / minor_extent, number `axis`) and a minor
/// axis (number `axis + 1`); later axes move up by one. E must be static and a multiple of
/// `minor_extent`, else it aborts.
LoopBody SplitAxis(const LoopBody& body, int axis, int64_t minor_extent);

}  // namespace fusion
