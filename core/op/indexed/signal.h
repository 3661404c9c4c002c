#pragma once

#include <string>

#include "core/op/op_def.h"

namespace fusion {

/// What the ops that make constants for signal processing share. Their element type is an attribute
/// "output_datatype".

/// Turns the number that ONNX gives the element type into its name.
absl::Status NormaliseOutputType(OnnxCall& call);
/// The element type; absent: f32. InvalidArgument unless it is numeric.
absl::StatusOr<DType> OutputTypeOf(const OpCall& call);

/// Definition of y[i] = a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n) for i below the constant
/// "size"; n is the size or, with periodic = 0, one less.
OpDef CosineWindow(std::string name, double a0, double a1, double a2);

/// The discrete Fourier transform of a signal along the second to last dim of a tensor. The last
/// dim holds real parts alone, or real and imaginary parts.
struct FourierTransform {
  /// Elements that are transformed: behind those that are there, zeros; what is more is left out.
  int64_t length = 0;
  /// Only the first length / 2 + 1 results, of which the others are the conjugates if x is real. If
  /// inverse those are x, and the results are real.
  bool onesided = false;
  bool inverse = false;

  bool to_real() const { return onesided && inverse; }
  int64_t half() const { return length / 2 + 1; }
  /// Elements that there may be of x.
  int64_t most() const { return to_real() ? half() : length; }
  int64_t bins() const { return onesided && !inverse ? half() : length; }
  /// Numbers of one result.
  int64_t parts() const { return to_real() ? 1 : 2; }
};

/// Elements of the constant matrix of a transform, at most.
inline constexpr int64_t kMaxFourierElements = int64_t{1} << 24;

/// y[.., k, :] = the sum over n of x[.., n, :] e^(-2 pi i k n / length); if inverse with +, and
/// divided by the length. Real and imaginary parts, as the product of x and one constant matrix.
/// InvalidArgument unless x is of a float type, its last dim 1 or 2 (with onesided 1, but for
/// inverses) and the length at least 1; Unimplemented for a symbolic dim among the last two and
/// beyond kMaxFourierElements.
absl::StatusOr<Decomposition::Value> Transformed(Decomposition& d, Decomposition::Value x,
                                                 const FourierTransform& how);

}  // namespace fusion
