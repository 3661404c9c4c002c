#pragma once

#include <string>

#include "core/tensor/host_tensor.h"

namespace fusion {

/// How two tensors differ, element by element. NaN equals NaN, an infinity only itself.
struct Difference {
  /// The largest |a - b|, of integers and bools too. Infinite where one of two is a number and the
  /// other is not, or where they are different infinities.
  double max_abs = 0;
  /// max_abs over the largest finite magnitude of the reference.
  double max_rel = 0;
  /// Elements beyond atol + rtol * (largest finite magnitude of the reference).
  int64_t outside = 0;
  /// Row-major position of the first of those; -1: none.
  int64_t first_outside = -1;
  /// Types or extents differ: nothing was compared.
  bool other_type = false;

  bool ok() const { return outside == 0 && !other_type; }
  std::string ToString() const;
};

struct Tolerance {
  double atol = 1e-5;
  double rtol = 1e-4;
};

/// Default tolerance of results of this element type: integers and bools exact, 16-bit floats
/// within two units in the last place of the largest element.
Tolerance DefaultTolerance(DType dtype);

/// The same where factors of sums of products may have been rounded to bf16: floats are as exact as
/// if they were bf16.
Tolerance RoundedTolerance(DType dtype);

Difference Compare(const HostTensor& got, const HostTensor& wanted, const Tolerance& tolerance);
inline Difference Compare(const HostTensor& got, const HostTensor& wanted) {
  return Compare(got, wanted, DefaultTolerance(wanted.dtype()));
}

}  // namespace fusion
