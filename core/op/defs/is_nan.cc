#include "core/op/forms.h"

namespace fusion {

/// y = x is not a number
OpDef DefineIsNan() {
  return RealFunction(
      "IsNaN", {}, [](const AttrMap&, const Expr& x) { return Expr::Unary(ScalarOp::kIsNan, x); });
}

}  // namespace fusion
