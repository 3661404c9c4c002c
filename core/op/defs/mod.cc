#include "core/op/forms.h"

namespace fusion {

namespace {

// Floats have had a sign of b since opset 28.
absl::Status NormaliseMod(OnnxCall& call) {
  const bool floats = !call.inputs.empty() && call.inputs[0] && IsFloat(call.inputs[0]->dtype);
  if (call.opset >= 28 || !floats || call.attrs.Int("fmod", 0) != 0) return absl::OkStatus();
  return InvalidArgument("attribute \"fmod\" is 0, inputs are ", DTypeName(call.inputs[0]->dtype),
                         "; float types need fmod=1 before opset 28");
}

}  // namespace

/// c = a modulo b: with the sign of b (fmod = 0), or with the sign of a as C's fmod (1)
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
            return ElementwiseBody(call, [&](const std::vector<Expr>& in) {
              if (fmod && !IsFloat(call.dtype(0))) return in[0] - in[1] * (in[0] / in[1]);
              Expr rest = Expr::Binary(ScalarOp::kMod, in[0], in[1]);
              if (fmod || !IsFloat(call.dtype(0))) return rest;
              const Expr zero = ConstLike(rest, 0);
              const Expr below = Expr::Binary(ScalarOp::kLt, rest, zero);
              const Expr other_sign =
                  Expr::Binary(ScalarOp::kNe, below, Expr::Binary(ScalarOp::kLt, in[1], zero));
              const Expr nothing = Expr::Select(Expr::Binary(ScalarOp::kLt, in[1], zero),
                                                ConstLike(rest, -0.0), zero);
              return Expr::Select(Expr::Binary(ScalarOp::kEq, rest, zero), nothing,
                                  Expr::Select(other_sign, rest + in[1], rest));
            });
          },
          .normalise = NormaliseMod};
}

}  // namespace fusion
