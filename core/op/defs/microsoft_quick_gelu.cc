#include "core/op/forms.h"

namespace fusion {

/// y = x * sigmoid(alpha * x)
OpDef DefineMicrosoftQuickGelu() {
  return RealFunction(
      "com.microsoft.QuickGelu", {"alpha"}, [](const AttrMap& attrs, const Expr& x) {
        return x * Expr::Unary(ScalarOp::kSigmoid, ConstLike(x, attrs.Float("alpha", 1.702)) * x);
      });
}

}  // namespace fusion
