#pragma once

#include "core/op/body/expr.h"

namespace fusion {

/// The angle in [-pi/2, pi/2] whose tangent is x (a float expression); relative error about 2 units
/// in the last place of f32. Rational approximation of Cephes (Moshier, 1989) on [0, 0.66], reached
/// by atan x = pi/4 + atan((x - 1) / (x + 1)) and atan x = pi/2 - atan(1 / x).
Expr ArcTangent(const Expr& x);

/// log(1 + x) with the relative error of a logarithm near 0 too: log(u) x / (u - 1) with u = 1 + x
/// rounded, whose errors cancel (Kahan).
Expr LogOnePlus(const Expr& x);

}  // namespace fusion
