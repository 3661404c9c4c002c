#pragma once

#include <string>

#include "core/op/op_def.h"

namespace fusion {

/// Common parts of ops for signal processing. The element type of a generated constant is attribute
/// "output_datatype".

/// OpDef::normalise: replaces ONNX's number in "output_datatype" by the name of the element type.
/// Unimplemented for an unsupported type.
absl::Status NormaliseOutputType(OnnxCall& call);
/// "output_datatype"; absent: f32. InvalidArgument unless it is numeric.
absl::StatusOr<DType> OutputTypeOf(const OpCall& call);

/// Definition of y[i] = a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n) for 0 <= i < "size" (a
/// constant); n is "size" or, with periodic = 0, size - 1.
OpDef CosineWindow(std::string name, double a0, double a1, double a2);

/// A discrete Fourier transform along the second to last dim of a tensor. The last dim has extent 1
/// (real parts) or 2 (real and imaginary parts).
struct FourierTransform {
  /// Number of transformed elements: the signal is padded with zeros, or truncated, to it.
  int64_t length = 0;
  /// Forward: returns only the first length / 2 + 1 results; x is real, and the other results are
  /// their conjugates. Inverse: x holds only these, and the results are real.
  bool onesided = false;
  bool inverse = false;

  bool to_real() const { return onesided && inverse; }
  int64_t half() const { return length / 2 + 1; }
  /// Largest number of elements of x that are used.
  int64_t most() const { return to_real() ? half() : length; }
  /// Number of results.
  int64_t bins() const { return onesided && !inverse ? half() : length; }
  /// Numbers per result: 1 (real) or 2 (complex).
  int64_t parts() const { return to_real() ? 1 : 2; }
};

/// Largest number of elements of the constant matrix of a transform.
inline constexpr int64_t kMaxFourierElements = int64_t{1} << 24;

/// y[.., k, :] = sum over n of x[.., n, :] e^(-2 pi i k n / length); the inverse has + in the
/// exponent and is divided by length. Computed as the product of x and one constant matrix.
/// InvalidArgument unless x is of a float type, its last dim is 1 or 2 (1 for a forward onesided
/// transform) and length is at least 1. Unimplemented for a symbolic dim among the last two and
/// beyond kMaxFourierElements.
absl::StatusOr<Decomposition::Value> Transformed(Decomposition& d, Decomposition::Value x,
                                                 const FourierTransform& how);

}  // namespace fusion
