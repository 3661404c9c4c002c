#include "core/op/forms.h"

namespace fusion {

/// y = gamma * (x > 0 ? x : alpha * (e^x - 1))
OpDef DefineSelu() {
  return RealFunction("Selu", {"alpha", "gamma"}, [](const AttrMap& attrs, const Expr& x) {
    Expr alpha = ConstLike(x, attrs.Float("alpha", 1.67326319217681884765625));
    Expr gamma = ConstLike(x, attrs.Float("gamma", 1.05070102214813232421875));
    Expr positive = Expr::Binary(ScalarOp::kGt, x, ConstLike(x, 0));
    Expr bent = alpha * ExpMinusOne(x);
    return gamma * Expr::Select(positive, x, bent);
  });
}

}  // namespace fusion
