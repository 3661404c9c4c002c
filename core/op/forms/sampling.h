#pragma once

#include <cstdint>

#include "core/op/op_def.h"

namespace fusion {

/// Reading a tensor at places that are computed: what GridSample and RoiAlign share. A place along
/// a dim is a coordinate in elements, of a float type; the elements around it are counted from the
/// one before it, by an offset.
///
///   linear at 2.25: elements 2 (offset 0) and 3 (offset 1) with the weights 0.75 and 0.25

/// What is read outside of the dim: zeros, the element at the border, or what a mirror at the
/// border shows.
enum class SamplePadding { kZeros, kBorder, kReflection };
/// kNearest takes the even one of two elements at the same distance.
enum class SampleFilter { kNearest, kLinear, kCubic };

/// One dim that is read at computed places.
struct SampledDim {
  int64_t extent = 0;
  SamplePadding padding = SamplePadding::kBorder;
  SampleFilter filter = SampleFilter::kLinear;
  /// The dim ends at the centres of its first and last elements, not at their outer borders.
  bool align_corners = false;
};

/// Offsets of the elements that a filter reads: first, first + 1, ..
struct SampleTaps {
  int64_t first = 0;
  int64_t count = 1;
};
SampleTaps TapsOf(SampleFilter filter);

/// Steps of the internal ops of these names; x is of a float type.

/// Coordinate of a place between -1 and 1, the ends of the dim; what the padding moves inside is.
absl::StatusOr<Decomposition::Value> SampleCoordinate(Decomposition& d, const SampledDim& dim,
                                                      Decomposition::Value x);
/// Index, i64, of the element at `offset` from the coordinate; one of the dim's in any case.
absl::StatusOr<Decomposition::Value> SampleIndex(Decomposition& d, const SampledDim& dim,
                                                 int64_t offset, Decomposition::Value x);
/// Whether the dim has the element at `offset` from the coordinate.
absl::StatusOr<Decomposition::Value> SampleInside(Decomposition& d, const SampledDim& dim,
                                                  int64_t offset, Decomposition::Value x);
/// Weight of that element in the linear or cubic filter.
absl::StatusOr<Decomposition::Value> SampleWeight(Decomposition& d, const SampledDim& dim,
                                                  int64_t offset, Decomposition::Value x);

/// The definitions of those ops.
OpDef SampleCoordinateOp();
OpDef SampleIndexOp();
OpDef SampleInsideOp();
OpDef SampleWeightOp();

}  // namespace fusion
