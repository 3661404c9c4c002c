#include "core/op/forms.h"

namespace fusion {

/// y = (e^x + e^-x) / 2
OpDef DefineCosh() {
  return RealFunction("Cosh", {}, [](const AttrMap&, const Expr& x) {
    Expr minus = Expr::Unary(ScalarOp::kNeg, x);
    Expr both = Expr::Unary(ScalarOp::kExp, x) + Expr::Unary(ScalarOp::kExp, minus);
    return both * ConstLike(x, 0.5);
  });
}

}  // namespace fusion
