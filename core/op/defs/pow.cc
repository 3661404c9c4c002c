#include "core/op/forms.h"

namespace fusion {

/// c = a ^ b in the type of the base: the exponent is cast to it, or the result if only the
/// exponent is a float
OpDef DefinePow() {
  return {.name = "Pow",
          .min_inputs = 2,
          .max_inputs = 2,
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            for (int i = 0; i < 2; ++i) {
              if (call.dtype(i) == DType::kBool) {
                return InvalidArgument("input ", i, " is bool, expected a numeric type");
              }
            }
            return ElementwiseBody(call, [](const std::vector<Expr>& in) {
              if (!IsFloat(in[0].type()) && IsFloat(in[1].type())) {
                Expr base = Expr::Cast(in[0], DType::kF64);
                Expr power = Expr::Binary(ScalarOp::kPow, base, Expr::Cast(in[1], DType::kF64));
                return Expr::Cast(power, in[0].type());
              }
              return Expr::Binary(ScalarOp::kPow, in[0], Expr::Cast(in[1], in[0].type()));
            });
          },
          .normalise = NormaliseOldBroadcast};
}

}  // namespace fusion
