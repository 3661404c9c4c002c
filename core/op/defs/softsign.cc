#include "core/op/forms.h"

namespace fusion {

/// y = x / (1 + |x|)
OpDef DefineSoftsign() {
  return RealFunction("Softsign", {}, [](const AttrMap&, const Expr& x) {
    return x / (ConstLike(x, 1) + Expr::Unary(ScalarOp::kAbs, x));
  });
}

}  // namespace fusion
