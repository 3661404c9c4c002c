#pragma once

#include "core/op/body/expr.h"

namespace fusion {

/// An equivalent, simpler expression: constants folded, x^2 as x*x, x*1 and x/1 as x, division by a
/// power of two as multiplication, casts to the same type dropped. These are bit-identical. x^3
/// becomes (x*x)*x, which differs from a library's pow by at most one unit in the last place.
/// Idempotent.
Expr Simplify(const Expr& expr);

}  // namespace fusion
