#include "core/op/forms.h"

namespace fusion {

/// y = x moved by bias towards 0 where |x| > lambd, else 0
OpDef DefineShrink() {
  OpDef def = RealFunction("Shrink", {"bias", "lambd"}, [](const AttrMap& attrs, const Expr& x) {
    Expr bias = ConstLike(x, attrs.Float("bias", 0));
    double lambda = attrs.Float("lambd", 0.5);
    Expr low = Expr::Binary(ScalarOp::kLt, x, ConstLike(x, -lambda));
    Expr high = Expr::Binary(ScalarOp::kGt, x, ConstLike(x, lambda));
    return Expr::Select(low, x + bias, Expr::Select(high, x - bias, ConstLike(x, 0)));
  });
  def.body = [of_floats = def.body](const OpCall& call, int output) -> absl::StatusOr<LoopBody> {
    RETURN_IF_ERROR(CheckFloatSupported(call));
    return of_floats(call, output);
  };
  return def;
}

}  // namespace fusion
