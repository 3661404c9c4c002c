#pragma once

#include <cstdint>
#include <vector>

#include "core/op/op_def.h"

namespace fusion {

/// Interpolation of Resize and Upsample. Names and formulas are those of ONNX's Resize. All
/// parameters are known when the op is decomposed: each dim becomes constant tables of indices and
/// weights.

enum class ResampleFilter { kNearest, kLinear, kCubic };

/// How the coordinate of a result element maps to a coordinate of the original.
enum class ResampleCoordinates {
  kHalfPixel,
  kHalfPixelSymmetric,
  kPytorchHalfPixel,
  kTfHalfPixelForNn,
  kAlignCorners,
  kAsymmetric,
  kTfCropAndResize,
};

/// How kNearest rounds a coordinate to an element.
enum class ResampleRounding {
  kRoundPreferFloor,
  kRoundPreferCeil,
  kFloor,
  kCeil,
  kFloorOrCeil,  // floor where a dim grows, ceil where it shrinks: Resize of opset 10
};

struct Resampling {
  ResampleFilter filter = ResampleFilter::kNearest;
  ResampleCoordinates coordinates = ResampleCoordinates::kHalfPixel;
  ResampleRounding rounding = ResampleRounding::kRoundPreferFloor;
  double cubic_coefficient = -0.75;
  /// True: elements outside the tensor get weight 0 and the other weights are scaled to sum 1.
  /// False: the border element is used for them.
  bool exclude_outside = false;
  /// Widens the filter if a dim shrinks.
  bool antialias = false;
  /// Value outside the tensor, kTfCropAndResize only.
  double extrapolation_value = 0;
};

/// One dim that is resized.
struct ResampledDim {
  int axis = 0;
  int64_t original = 0;
  int64_t resized = 0;
  double scale = 1;
  /// scale * original: `resized` before it was rounded.
  double length = 0;
  /// kTfCropAndResize: the part of the original that is read; 0 is the first element, 1 the last.
  double roi_begin = 0;
  double roi_end = 1;
};

/// Largest number of table entries of one dim; more is Unimplemented.
inline constexpr int64_t kMaxResampleEntries = int64_t{1} << 22;

/// floor(original * scale) in f32, as ONNX infers it. InvalidArgument unless the scale is positive
/// and finite and the result is at most kMaxExtent.
absl::StatusOr<int64_t> ScaledExtent(int64_t original, double scale);

/// Input 0 with `dims` resized one after the other, in ascending order of scale. Along each dim y =
/// sum_k x[index_k] * weight_k over the taps k of the filter. kNearest takes any element type, the
/// others numeric types (else InvalidArgument). Integers are computed in f64 and truncated.
absl::StatusOr<Decomposition::Value> Resampled(Decomposition& d, const Resampling& how,
                                               std::vector<ResampledDim> dims);

/// The type in which elements of `type` are interpolated: f64 for f64 and integers, else f32.
DType InterpolationType(DType type);

}  // namespace fusion
