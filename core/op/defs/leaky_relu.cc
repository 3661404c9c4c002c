#include "core/op/forms.h"

namespace fusion {

/// y = x < 0 ? alpha * x : x
OpDef DefineLeakyRelu() {
  return RealFunction("LeakyRelu", {"alpha"}, [](const AttrMap& attrs, const Expr& x) {
    Expr negative = Expr::Binary(ScalarOp::kLt, x, ConstLike(x, 0));
    return Expr::Select(negative, ConstLike(x, attrs.Float("alpha", 0.01)) * x, x);
  });
}

}  // namespace fusion
