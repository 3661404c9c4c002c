#include "core/op/forms.h"

namespace fusion {

/// y = x * (x / 6 + 0.5, cut to 0..1)
OpDef DefineHardSwish() {
  return RealFunction("HardSwish", {}, [](const AttrMap&, const Expr& x) {
    Expr line = x * ConstLike(x, 1.0 / 6) + ConstLike(x, 0.5);
    Expr low = Expr::Binary(ScalarOp::kMax, line, ConstLike(x, 0));
    return x * Expr::Binary(ScalarOp::kMin, low, ConstLike(x, 1));
  });
}

}  // namespace fusion
