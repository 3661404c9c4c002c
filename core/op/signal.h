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
  /// Only the first length / 2 + 1 results, of which the others are the conjugates if x is real.
  bool onesided = false;
  bool inverse = false;

  int64_t bins() const { return onesided ? length / 2 + 1 : length; }
};

/// Elements of the constant matrix of a transform, at most.
inline constexpr int64_t kMaxFourierElements = int64_t{1} << 24;

/// y[.., k, :] = the sum over n of x[.., n, :] e^(-2 pi i k n / length); if inverse with +, and
/// divided by the length. Real and imaginary parts, as the product of x and one constant matrix.
/// InvalidArgument unless x is of a float type, its last dim 1 or 2 (with onesided 1) and the
/// length at least 1; Unimplemented for a symbolic dim among the last two and beyond
/// kMaxFourierElements.
absl::StatusOr<Decomposition::Value> Transformed(Decomposition& d, Decomposition::Value x,
                                                 const FourierTransform& how);

}  // namespace fusion
