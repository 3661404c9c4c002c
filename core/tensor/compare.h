#pragma once

#include <string>

#include "core/tensor/host_tensor.h"

namespace fusion {

/// How two tensors differ, element by element. NaN equals NaN; an infinity equals only itself.
struct Difference {
  /// The largest |a - b|, for integers and bools too. Infinite where exactly one of two elements is
  /// finite, where exactly one is NaN, or where both are different infinities.
  double max_abs = 0;
  /// max_abs divided by the largest finite magnitude of the reference; max_abs itself if that
  /// magnitude is 0.
  double max_rel = 0;
  /// Elements with |a - b| > atol + rtol * (largest finite magnitude of the reference). For
  /// integers and bools: all elements that differ, whatever the tolerance.
  int64_t outside = 0;
  /// Row-major position of the first such element; -1: none.
  int64_t first_outside = -1;
  /// Types or extents differ. Then nothing was compared.
  bool other_type = false;

  bool ok() const { return outside == 0 && !other_type; }
  std::string ToString() const;
};

/// Absolute and relative tolerance; `rtol` is relative to the largest finite magnitude of the
/// reference.
struct Tolerance {
  double atol = 1e-5;
  double rtol = 1e-4;
};

/// Default tolerance for results of this element type. Integers and bools: exact. f32, f64: the
/// defaults of Tolerance. 16-bit floats: two units in the last place of the largest element.
/// Narrower floats: one unit in the last place of the largest value of the type; f8e8m0: exact.
Tolerance DefaultTolerance(DType dtype);

/// The tolerance if factors of sums of products may have been rounded to bf16: floats get at least
/// the tolerance of bf16.
Tolerance RoundedTolerance(DType dtype);

/// Compares `got` with the reference `wanted`. Pure.
Difference Compare(const HostTensor& got, const HostTensor& wanted, const Tolerance& tolerance);
inline Difference Compare(const HostTensor& got, const HostTensor& wanted) {
  return Compare(got, wanted, DefaultTolerance(wanted.dtype()));
}

}  // namespace fusion
