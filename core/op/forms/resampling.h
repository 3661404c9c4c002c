#pragma once

#include <cstdint>
#include <vector>

#include "core/op/op_def.h"

namespace fusion {

/// How Resize and Upsample read a tensor at places between its elements. Names and formulas are
/// those of ONNX's Resize; everything is known when the op is taken apart, so that a dim becomes
/// tables of indices and weights.

enum class ResampleFilter { kNearest, kLinear, kCubic };

/// Where an element of the result lies in the original.
enum class ResampleCoordinates {
  kHalfPixel,
  kHalfPixelSymmetric,
  kPytorchHalfPixel,
  kTfHalfPixelForNn,
  kAlignCorners,
  kAsymmetric,
  kTfCropAndResize,
};

/// Which element kNearest takes.
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
  /// The weights of elements outside of the tensor are given to the others; else the border's
  /// element stands for them.
  bool exclude_outside = false;
  /// Filters become wider where a dim shrinks.
  bool antialias = false;
  /// What lies outside of the tensor with kTfCropAndResize.
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
  /// kTfCropAndResize: the part of the original that is shown, from 0 to 1.
  double roi_begin = 0;
  double roi_end = 1;
};

/// Entries of the tables of one dim, at most.
inline constexpr int64_t kMaxResampleEntries = int64_t{1} << 22;

/// Extent of a dim of extent `original` times a scale, as ONNX infers it. InvalidArgument unless
/// the scale is positive and the extent below kMaxExtent.
absl::StatusOr<int64_t> ScaledExtent(int64_t original, double scale);

/// Input 0 with `dims` resized one after the other, those that shrink most first: y = sum_k
/// x[index_k] * weight_k along each, with as many k as the filter reaches. kNearest takes any
/// element type, the others numeric ones; integers are computed in f64 and cut off.
absl::StatusOr<Decomposition::Value> Resampled(Decomposition& d, const Resampling& how,
                                               std::vector<ResampledDim> dims);

/// The type in which elements of `type` are weighted and added: f64 for f64 and integers, else f32.
DType InterpolationType(DType type);

}  // namespace fusion
