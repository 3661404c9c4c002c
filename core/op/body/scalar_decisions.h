#pragma once

#include <cstdint>

#include "core/op/body/expr.h"

namespace fusion {

/// True if the form of `e` depends on the order or the size of its arguments: comparisons, minima,
/// roundings, divisions of integers. Sums and products never do.
bool Decides(const Expr& e);

/// Adds what `op`, which Decides, looks at for the arguments `a` and `b` (the same for a function
/// of one argument). `to` is the type of the result.
void AddRealDecision(ScalarOp op, DType to, double a, double b, DecisionLog* log);
void AddIntegerDecision(ScalarOp op, int64_t a, int64_t b, DecisionLog* log);

}  // namespace fusion
