#pragma once

#include <string>

#include "core/op/body/expr.h"

namespace fusion {

/// Options of a Cast to an 8-bit float type: the attributes "saturate" and, for f8e8m0,
/// "round_mode".
struct Narrowing {
  enum Mode : uint8_t { kUp, kDown, kNearest };  // f8e8m0 only; ties of kNearest round up
  bool saturate = true;
  Mode mode = kUp;
};

/// `x` converted to `type`.
///   - 8-bit float: a magnitude above the largest finite value becomes that value with `saturate`,
///     else NaN or infinity.
///   - f8e8m0 has no sign and no zero: magnitudes below the smallest value become it; infinity and
///     NaN become NaN.
///   - float to an integer of less than 8 bits: the low bits of the truncated value.
///   - all others: a cast.
Expr Narrowed(const Expr& x, DType type, const Narrowing& how);

}  // namespace fusion
