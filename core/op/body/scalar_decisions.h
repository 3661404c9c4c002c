#pragma once

#include <cstdint>

#include "core/op/body/expr.h"

namespace fusion {

/// True if the value of the node `e` is not one polynomial of its arguments but depends on their
/// order or size: comparisons, minima, roundings, integer divisions. False for sums and products.
bool Decides(const Expr& e);

/// Adds to `log` the decisions of `op` (for which Decides is true) on the arguments `a` and `b`; a
/// function of one argument gets it twice. `to` is the result type.
void AddRealDecision(ScalarOp op, DType to, double a, double b, DecisionLog* log);
void AddIntegerDecision(ScalarOp op, int64_t a, int64_t b, DecisionLog* log);

}  // namespace fusion
