#include "core/op/forms.h"

namespace fusion {

/// y = x * sigmoid(alpha x)
OpDef DefineSwish() {
  OpDef def = RealFunction("Swish", {"alpha"}, [](const AttrMap& attrs, const Expr& x) {
    const double alpha = attrs.Float("alpha", 1);
    return x * Expr::Unary(ScalarOp::kSigmoid, alpha == 1 ? x : x * ConstLike(x, alpha));
  });
  def.min_opset = 24;
  return def;
}

}  // namespace fusion
