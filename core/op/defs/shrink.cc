#include "core/op/forms.h"

namespace fusion {

/// y = x moved by bias towards 0 where |x| > lambd, else 0
OpDef DefineShrink() {
  return RealFunction("Shrink", {"bias", "lambd"}, [](const AttrMap& attrs, const Expr& x) {
    Expr bias = ConstLike(x, attrs.Float("bias", 0));
    double lambda = attrs.Float("lambd", 0.5);
    Expr low = Expr::Binary(ScalarOp::kLt, x, ConstLike(x, -lambda));
    Expr high = Expr::Binary(ScalarOp::kGt, x, ConstLike(x, lambda));
    return Expr::Select(low, x + bias, Expr::Select(high, x - bias, ConstLike(x, 0)));
  });
}

}  // namespace fusion
