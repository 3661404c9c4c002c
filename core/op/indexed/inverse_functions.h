#pragma once

#include "core/op/body/expr.h"

namespace fusion {

/// arctan x in [-pi/2, pi/2] for a float expression x; relative error about 2 units in the last
/// place of f32. Rational approximation of Cephes (Moshier, 1989) on [0, 0.66]. Other arguments are
/// reduced by atan x = pi/4 + atan((x - 1) / (x + 1)) and atan x = pi/2 - atan(1 / x).
Expr ArcTangent(const Expr& x);

/// log(1 + x), also accurate near 0: log(u) x / (u - 1), where u is the rounded 1 + x. The errors
/// of both factors cancel (Kahan).
Expr LogOnePlus(const Expr& x);

}  // namespace fusion
