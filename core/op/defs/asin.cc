#include "core/op/forms.h"
#include "core/op/indexed/inverse_functions.h"

namespace fusion {

/// y = arcsin x = arctan(x / sqrt((1 - x) (1 + x))); NaN beyond 1
OpDef DefineAsin() {
  return RealFunction("Asin", {}, [](const AttrMap&, const Expr& x) {
    const Expr one = ConstLike(x, 1);
    return ArcTangent(x / Expr::Unary(ScalarOp::kSqrt, (one - x) * (one + x)));
  });
}

}  // namespace fusion
