#include "core/op/forms.h"

namespace fusion {

/// y = condition ? a : b, with broadcasting
OpDef DefineWhere() {
  return {.name = "Where",
          .min_inputs = 3,
          .max_inputs = 3,
          .min_opset = 9,
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            RETURN_IF_ERROR(call.CheckSameType(1, 2));
            if (call.dtype(0) != DType::kBool) {
              return InvalidArgument("input 0 is ", DTypeName(call.dtype(0)), ", expected bool");
            }
            return ElementwiseBody(call, [](const std::vector<Expr>& in) {
              return Expr::Select(in[0], in[1], in[2]);
            });
          }};
}

}  // namespace fusion
