#include "core/op/forms.h"
#include "core/op/indexed/inverse_functions.h"

namespace fusion {

/// y = artanh x = log1p(2 x / (1 - x)) / 2; NaN beyond 1
OpDef DefineAtanh() {
  return RealFunction("Atanh", {}, [](const AttrMap&, const Expr& x) {
    const Expr size = Expr::Unary(ScalarOp::kAbs, x);
    const Expr y = ConstLike(x, 0.5) * LogOnePlus((size + size) / (ConstLike(x, 1) - size));
    return Expr::Unary(ScalarOp::kSign, x) * y;
  });
}

}  // namespace fusion
