#include "core/op/forms.h"

namespace fusion {

/// y = x < 0 ? slope * x : x; slope broadcasts to x
OpDef DefinePrelu() {
  return {.name = "PRelu",
          .min_inputs = 2,
          .max_inputs = 2,
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            RETURN_IF_ERROR(call.CheckSameType(0, 1));
            if (call.dtype(0) == DType::kBool) {
              return InvalidArgument("inputs are bool, expected a numeric type");
            }
            ASSIGN_OR_RETURN(LoopBody body, ElementwiseBody(call, [](const std::vector<Expr>& in) {
                               Expr negative =
                                   Expr::Binary(ScalarOp::kLt, in[0], ConstLike(in[0], 0));
                               return Expr::Select(negative, in[1] * in[0], in[0]);
                             }));
            if (body.OutputType() != call.in(0)) {
              return InvalidArgument("input 1 ", call.in(1).ToString(),
                                     " does not broadcast to input 0 ", call.in(0).ToString());
            }
            return body;
          },
          .normalise = NormaliseOldBroadcast};
}

}  // namespace fusion
