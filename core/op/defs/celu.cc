#include "core/op/forms.h"

namespace fusion {

/// y = x < 0 ? alpha * (e^(x / alpha) - 1) : x
OpDef DefineCelu() {
  return RealFunction("Celu", {"alpha"}, [](const AttrMap& attrs, const Expr& x) {
    Expr alpha = ConstLike(x, attrs.Float("alpha", 1));
    Expr negative = Expr::Binary(ScalarOp::kLt, x, ConstLike(x, 0));
    Expr bent = ExpMinusOne(x / alpha);
    return Expr::Select(negative, alpha * bent, x);
  });
}

}  // namespace fusion
