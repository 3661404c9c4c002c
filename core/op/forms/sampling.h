#pragma once

#include <cstdint>

#include "core/op/op_def.h"

namespace fusion {

/// Reads of a tensor at computed positions, for GridSample and RoiAlign. The position along a dim
/// is a float coordinate in units of elements. A tap is an element near it, at floor(coordinate) +
/// offset.
///
///   linear at 2.25: elements 2 (offset 0) and 3 (offset 1) with the weights 0.75 and 0.25

/// Value outside the dim: zero, the border element, or the reflection at the border.
enum class SamplePadding { kZeros, kBorder, kReflection };
/// kNearest rounds ties to the even element.
enum class SampleFilter { kNearest, kLinear, kCubic };

/// One dim that is read at computed places.
struct SampledDim {
  int64_t extent = 0;
  SamplePadding padding = SamplePadding::kBorder;
  SampleFilter filter = SampleFilter::kLinear;
  /// True: the dim extends from the centre of its first element to that of its last. False: it
  /// includes their outer halves.
  bool align_corners = false;
};

/// Offsets of the taps of a filter: first .. first + count - 1.
struct SampleTaps {
  int64_t first = 0;
  int64_t count = 1;
};
SampleTaps TapsOf(SampleFilter filter);

/// Each function below adds a step of the internal op of its name. x is of a float type, in any
/// shape; the result has that shape. For SampleCoordinate x is normalised, -1 and 1 being the ends
/// of the dim; for the others it is a result of SampleCoordinate, or a coordinate.

/// The coordinate of a normalised position, after rounding (kNearest), clamping (kBorder) or
/// reflection (kReflection).
absl::StatusOr<Decomposition::Value> SampleCoordinate(Decomposition& d, const SampledDim& dim,
                                                      Decomposition::Value x);
/// Index (i64) of the tap at `offset`, reflected or clamped into the dim.
absl::StatusOr<Decomposition::Value> SampleIndex(Decomposition& d, const SampledDim& dim,
                                                 int64_t offset, Decomposition::Value x);
/// bool: the tap at `offset` is inside the dim.
absl::StatusOr<Decomposition::Value> SampleInside(Decomposition& d, const SampledDim& dim,
                                                  int64_t offset, Decomposition::Value x);
/// Weight of the tap at `offset` in the linear or cubic filter.
absl::StatusOr<Decomposition::Value> SampleWeight(Decomposition& d, const SampledDim& dim,
                                                  int64_t offset, Decomposition::Value x);

/// The definitions of these ops.
OpDef SampleCoordinateOp();
OpDef SampleIndexOp();
OpDef SampleInsideOp();
OpDef SampleWeightOp();

}  // namespace fusion
