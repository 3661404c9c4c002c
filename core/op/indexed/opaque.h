#pragma once

#include <string>

#include "core/op/op_def.h"

namespace fusion {

// Ops that no affine loop says: a running sum, the order of the elements of a row, the choice of
// boxes. Evaluator, schedules and backends know each of them by the name of its OpDef, which has
// `opaque`; what it does follows from its attributes and the shapes of its operands. Operands and
// result lie dense and row-major in memory.

/// The type in which such an op works on elements of input `input`: f32 for 16-bit floats, i32 for
/// narrow integers, else theirs. InvalidArgument for bool.
absl::StatusOr<DType> WideType(const OpCall& call, int input);

/// A tensor seen along one dim: element (o, n, i) lies at (o * extent + n) * inner + i.
struct RowsAlong {
  int64_t outer = 1;
  int64_t extent = 1;
  int64_t inner = 1;
};
RowsAlong RowsAlongAxis(const Dims& dims, int axis);

/// y[n] = x[0] op .. op x[n] along a dim.
///   in: x [..]   out: y, of x's type
struct RunningFold {
  static constexpr char kName[] = "RunningFold";
  RowsAlong rows;
  std::string monoid;      // "sum", "prod", "max", "min"
  bool exclusive = false;  // without x[n]; the first is the identity
  bool reverse = false;    // from the end
};
/// `attrs`: "axis", "monoid", "exclusive", "reverse".
RunningFold RunningFoldOf(const AttrMap& attrs, const Dims& x);

/// Where the first `count` elements of each row are, in their order: the largest first, or the
/// smallest; equal ones as they stand. NaN counts as larger than any number, -0 as 0.
///   in: x [..]   out: i64 [.., count, ..]
/// With "things", the rows of a matrix are put in order, compared element by element.
///   in: x [n, m]  out: i64 [count]
struct RowOrder {
  static constexpr char kName[] = "RowOrder";
  RowsAlong rows;  // of things: extent of them, inner elements each
  bool things = false;
  bool largest = true;
  int64_t count = 0;
};
/// `attrs`: "axis", "count", "largest", "things".
RowOrder RowOrderOf(const AttrMap& attrs, const Dims& x);

/// Where the elements that are true are, ascending; then the last of them again, or 0 where none
/// is.
///   in: x bool [n]   out: i64 [n]
struct ChosenPlaces {
  static constexpr char kName[] = "ChosenPlaces";
};

/// Boxes of each batch and class by descending score, without those that share more than a part
/// with one chosen before: the number of the box, or -1 where there are no more.
///   in: boxes f32 [batch, boxes, 4], scores f32 [batch, classes, boxes], part f32 [], and, with
///   "limited", limit f32 []: only scores above it count
///   out: i64 [batch, classes, count]
/// All arithmetic is done in f32, each operation rounded, so that every machine chooses alike. A
/// score that is NaN is none.
struct BoxChoice {
  static constexpr char kName[] = "BoxChoice";
  int64_t batch = 0;
  int64_t classes = 0;
  int64_t boxes = 0;
  int64_t count = 0;
  bool centred = false;  // boxes are [x, y, width, height] of the centre, not [y1, x1, y2, x2]
  bool limited = false;
};
/// `attrs`: "count", "centred", "limited".
BoxChoice BoxChoiceOf(const AttrMap& attrs, const Dims& scores);

/// The part that two boxes share of what they cover together; 0 where they share nothing. Each
/// operation is rounded to f32.
struct Box2d {
  float top = 0;
  float left = 0;
  float bottom = 0;
  float right = 0;
  float area = 0;
};
Box2d BoxFrom(const float* box, bool centred);
bool Overlaps(const Box2d& a, const Box2d& b, float part);

}  // namespace fusion
