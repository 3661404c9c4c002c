#pragma once

#include "core/op/body/expr.h"

namespace fusion {

/// Rewrites that never change a result bit: constants folded, x^2 as x*x, x*1 and x/1 as x,
/// division by a power of two as multiplication, casts to the same type dropped. x^3 becomes
/// (x*x)*x, which rounds differently from a library's pow by at most one unit in the last place.
/// Idempotent.
Expr Simplify(const Expr& expr);

}  // namespace fusion
