#include "core/op/forms.h"

namespace fusion {

/// y = alpha * x + beta, cut to 0..1
OpDef DefineHardSigmoid() {
  return RealFunction("HardSigmoid", {"alpha", "beta"}, [](const AttrMap& attrs, const Expr& x) {
    Expr line =
        ConstLike(x, attrs.Float("alpha", 0.2)) * x + ConstLike(x, attrs.Float("beta", 0.5));
    Expr low = Expr::Binary(ScalarOp::kMax, line, ConstLike(x, 0));
    return Expr::Binary(ScalarOp::kMin, low, ConstLike(x, 1));
  });
}

}  // namespace fusion
