#include "core/op/forms.h"

namespace fusion {

/// y = sin x / cos x
OpDef DefineTan() {
  return RealFunction("Tan", {}, [](const AttrMap&, const Expr& x) {
    return Expr::Unary(ScalarOp::kSin, x) / Expr::Unary(ScalarOp::kCos, x);
  });
}

}  // namespace fusion
