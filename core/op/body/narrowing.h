#pragma once

#include <string>

#include "core/op/body/expr.h"

namespace fusion {

/// What Cast does beyond rounding where its target is a float of 8 bits: attributes "saturate" and,
/// of f8e8m0, "round_mode".
struct Narrowing {
  enum Mode : uint8_t { kUp, kDown, kNearest };  // of f8e8m0, whose ties go up
  bool saturate = true;
  Mode mode = kUp;
};

/// `x` as a value of `type`. Beyond the largest value of a float of 8 bits that is this one, or NaN
/// or infinity if it does not saturate. f8e8m0 has no sign and no zero: magnitudes below the
/// smallest value are rounded to it, and what is no number, infinity included, is NaN. Of a float,
/// an integer of less than 8 bits is the low bits of what the float is cut off to. Other types: a
/// cast.
Expr Narrowed(const Expr& x, DType type, const Narrowing& how);

}  // namespace fusion
