#include "core/op/forms.h"

namespace fusion {

/// c = a modulo b: with the sign of b for integers (fmod = 0), with the sign of a as C's fmod (1)
OpDef DefineMod() {
  return {.name = "Mod",
          .min_inputs = 2,
          .max_inputs = 2,
          .params = {{.name = "fmod", .kind = ParamSpec::kInt}},
          .min_opset = 10,
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            RETURN_IF_ERROR(call.CheckSameType(0, 1));
            bool fmod = call.attrs().Int("fmod", 0) != 0;
            if (call.dtype(0) == DType::kBool) {
              return InvalidArgument("inputs are bool, expected a numeric type");
            }
            if (IsFloat(call.dtype(0)) && !fmod) {
              return InvalidArgument("attribute \"fmod\" is 0, inputs are ",
                                     DTypeName(call.dtype(0)), "; float types need fmod=1");
            }
            return ElementwiseBody(call, [&](const std::vector<Expr>& in) {
              if (fmod && !IsFloat(call.dtype(0))) return in[0] - in[1] * (in[0] / in[1]);
              return Expr::Binary(ScalarOp::kMod, in[0], in[1]);
            });
          }};
}

}  // namespace fusion
