#include "core/op/forms.h"

namespace fusion {

/// y = x < 0 ? alpha * x : x
OpDef DefineLeakyRelu() {
  return {.name = "LeakyRelu",
          .params = {{.name = "alpha", .kind = ParamSpec::kFloat}},
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            if (!IsFloat(call.dtype(0))) {
              return InvalidArgument("input 0 is ", DTypeName(call.dtype(0)),
                                     ", expected a float type");
            }
            return ElementwiseBody(call, [&](const std::vector<Expr>& in) {
              const Expr& x = in[0];
              Expr alpha = Expr::Const(x.type(), call.attrs().Float("alpha", 0.01));
              Expr negative = Expr::Binary(ScalarOp::kLt, x, Expr::Const(x.type(), 0));
              return Expr::Select(negative, alpha * x, x);
            });
          }};
}

}  // namespace fusion
