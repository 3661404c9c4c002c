#include <numbers>

#include "core/op/forms.h"
#include "core/op/indexed/inverse_functions.h"

namespace fusion {

/// y = arsinh x, odd: log1p(x + x^2 / (1 + sqrt(1 + x^2))) for x > 0, log x + log 2 where x^2 is
/// large
OpDef DefineAsinh() {
  return RealFunction("Asinh", {}, [](const AttrMap&, const Expr& x) {
    const Expr one = ConstLike(x, 1);
    const Expr size = Expr::Unary(ScalarOp::kAbs, x);
    const Expr square = x * x;
    const Expr near =
        LogOnePlus(size + square / (one + Expr::Unary(ScalarOp::kSqrt, one + square)));
    const Expr far = Expr::Unary(ScalarOp::kLog, size) + ConstLike(x, std::numbers::ln2);
    const Expr large = Expr::Binary(ScalarOp::kGt, size, ConstLike(x, 1e4));
    return Expr::Unary(ScalarOp::kSign, x) * Expr::Select(large, far, near);
  });
}

}  // namespace fusion
