#pragma once

#include <string>

#include "core/op/op_def.h"

namespace fusion {

// Ops that an affine loop cannot express: running folds, sorting, selection. Their OpDef sets
// `opaque`. Evaluator, schedules and backends implement each of them by its name (kName). The
// structs below describe one call; a function ..Of makes it from the attributes and the shape of an
// operand, both checked before. Operands and result are dense and row-major in memory.

/// The type in which such an op processes elements of input `input`: f32 for floats of at most 16
/// bits, i32 for integers of at most 16 bits, else the type of the input. InvalidArgument for bool.
absl::StatusOr<DType> WideType(const OpCall& call, int input);

/// A row-major tensor as [outer, extent, inner] around one dim: element (o, n, i) is at
/// (o * extent + n) * inner + i.
struct RowsAlong {
  int64_t outer = 1;
  int64_t extent = 1;
  int64_t inner = 1;
};
/// `axis`: 0..dims.size() - 1.
RowsAlong RowsAlongAxis(const Dims& dims, int axis);

/// y[n] = x[0] op .. op x[n] along a dim.
///   in: x [..]   out: y, of x's type
struct RunningFold {
  static constexpr char kName[] = "RunningFold";
  RowsAlong rows;
  std::string monoid;      // "sum", "prod", "max", "min"
  bool exclusive = false;  // without x[n]; y[0] is the identity
  bool reverse = false;    // fold from the end
};
/// `attrs`: "axis", "monoid", "exclusive", "reverse".
RunningFold RunningFoldOf(const AttrMap& attrs, const Dims& x);

/// Partial stable argsort along a dim: the positions of the first `count` elements, in descending
/// order with `largest`, else ascending. NaN is larger than any number; -0 equals 0.
///   in: x [..]   out: i64 [.., count, ..]
/// With `things` it sorts the rows of a matrix lexicographically.
///   in: x [n, m]  out: i64 [count]
struct RowOrder {
  static constexpr char kName[] = "RowOrder";
  RowsAlong rows;  // with `things`: `extent` rows of `inner` elements
  bool things = false;
  bool largest = true;
  int64_t count = 0;
};
/// `attrs`: "axis", "count", "largest", "things".
RowOrder RowOrderOf(const AttrMap& attrs, const Dims& x);

/// The positions of the true elements, ascending. The rest of the result repeats the last of them;
/// if there are none it is 0.
///   in: x bool [n]   out: i64 [n]
struct ChosenPlaces {
  static constexpr char kName[] = "ChosenPlaces";
};

/// Non-maximum suppression: selects boxes of each batch and class by descending score and skips a
/// box that overlaps a selected one by more than `part` (Overlaps). The result holds box numbers,
/// padded with -1.
///   in: boxes f32 [batch, boxes, 4], scores f32 [batch, classes, boxes], part f32 [], and, with
///   `limited`, limit f32 []: scores must exceed it
///   out: i64 [batch, classes, count]
/// Every operation is rounded to f32, so that all machines select the same boxes. A box whose score
/// is NaN is skipped.
struct BoxChoice {
  static constexpr char kName[] = "BoxChoice";
  int64_t batch = 0;
  int64_t classes = 0;
  int64_t boxes = 0;
  int64_t count = 0;
  bool centred = false;  // boxes are [centre x, centre y, width, height], not [y1, x1, y2, x2]
  bool limited = false;
};
/// `attrs`: "count", "centred", "limited".
BoxChoice BoxChoiceOf(const AttrMap& attrs, const Dims& scores);

/// A box by its sides. The functions below round every operation to f32.
struct Box2d {
  float top = 0;
  float left = 0;
  float bottom = 0;
  float right = 0;
  float area = 0;
};
/// From the 4 numbers at `box`, in the format of BoxChoice::centred.
Box2d BoxFrom(const float* box, bool centred);
/// Whether intersection / union exceeds `part`; false if the intersection is empty.
bool Overlaps(const Box2d& a, const Box2d& b, float part);

}  // namespace fusion
