#include <numbers>

#include "core/op/forms.h"
#include "core/op/indexed/inverse_functions.h"

namespace fusion {

/// y = arcosh x = log1p(t + sqrt(2 t + t^2)) with t = x - 1, log x + log 2 where t is large; NaN
/// below 1
OpDef DefineAcosh() {
  return RealFunction("Acosh", {}, [](const AttrMap&, const Expr& x) {
    const Expr t = x - ConstLike(x, 1);
    const Expr near = LogOnePlus(t + Expr::Unary(ScalarOp::kSqrt, t + t + t * t));
    const Expr far = Expr::Unary(ScalarOp::kLog, x) + ConstLike(x, std::numbers::ln2);
    return Expr::Select(Expr::Binary(ScalarOp::kGt, x, ConstLike(x, 1e4)), far, near);
  });
}

}  // namespace fusion
