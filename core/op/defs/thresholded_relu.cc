#include "core/op/forms.h"

namespace fusion {

/// y = x > alpha ? x : 0
OpDef DefineThresholdedRelu() {
  return RealFunction("ThresholdedRelu", {"alpha"}, [](const AttrMap& attrs, const Expr& x) {
    Expr above = Expr::Binary(ScalarOp::kGt, x, ConstLike(x, attrs.Float("alpha", 1)));
    return Expr::Select(above, x, ConstLike(x, 0));
  });
}

}  // namespace fusion
