#include "core/op/forms.h"

namespace fusion {

/// y = log(1 + e^x)
OpDef DefineSoftplus() {
  return RealFunction("Softplus", {}, [](const AttrMap&, const Expr& x) {
    // log(1 + e^x) without overflow.
    Expr small =
        Expr::Unary(ScalarOp::kExp, Expr::Unary(ScalarOp::kNeg, Expr::Unary(ScalarOp::kAbs, x)));
    Expr log = Expr::Unary(ScalarOp::kLog, ConstLike(x, 1) + small);
    return Expr::Binary(ScalarOp::kMax, x, ConstLike(x, 0)) + log;
  });
}

}  // namespace fusion
