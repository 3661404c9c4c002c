#include "core/op/forms.h"

namespace fusion {

/// y = x * tanh(log(1 + e^x))
OpDef DefineMish() {
  return RealFunction("Mish", {}, [](const AttrMap&, const Expr& x) {
    // log(1 + e^x) without overflow.
    Expr small =
        Expr::Unary(ScalarOp::kExp, Expr::Unary(ScalarOp::kNeg, Expr::Unary(ScalarOp::kAbs, x)));
    Expr log = Expr::Unary(ScalarOp::kLog, ConstLike(x, 1) + small);
    Expr softplus = Expr::Binary(ScalarOp::kMax, x, ConstLike(x, 0)) + log;
    return x * Expr::Unary(ScalarOp::kTanh, softplus);
  });
}

}  // namespace fusion
