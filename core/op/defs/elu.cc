#include "core/op/forms.h"

namespace fusion {

/// y = x < 0 ? alpha * (e^x - 1) : x
OpDef DefineElu() {
  return RealFunction("Elu", {"alpha"}, [](const AttrMap& attrs, const Expr& x) {
    Expr negative = Expr::Binary(ScalarOp::kLt, x, ConstLike(x, 0));
    Expr bent = ExpMinusOne(x);
    return Expr::Select(negative, ConstLike(x, attrs.Float("alpha", 1)) * bent, x);
  });
}

}  // namespace fusion
