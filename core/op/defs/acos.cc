#include "core/op/forms.h"
#include "core/op/indexed/inverse_functions.h"

namespace fusion {

/// y = arccos x = 2 arctan sqrt((1 - x) / (1 + x)); NaN beyond 1
OpDef DefineAcos() {
  return RealFunction("Acos", {}, [](const AttrMap&, const Expr& x) {
    const Expr one = ConstLike(x, 1);
    return ConstLike(x, 2) * ArcTangent(Expr::Unary(ScalarOp::kSqrt, (one - x) / (one + x)));
  });
}

}  // namespace fusion
