#include "core/op/forms.h"
#include "core/op/indexed/random_numbers.h"

namespace fusion {

/// y = 1 with probability x, else 0, of `dtype` or x's type: where a number that follows from
/// `seed` and the place of the element (core/op/indexed/random_numbers.h) is below x
OpDef DefineBernoulli() {
  return {.name = "Bernoulli",
          .params = RandomParams({}, /*like=*/true),
          .min_opset = 15,
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            RETURN_IF_ERROR(CheckFloat(call, 0));
            ASSIGN_OR_RETURN(const double seed, SeedOf(call));
            DType type = call.dtype(0);
            if (const auto* name = call.attrs().Find<std::string>("dtype")) {
              const std::optional<DType> given = ParseDType(*name);
              if (!given) return InvalidArgument("attribute \"dtype\" is no element type");
              type = *given;
            }
            const DType work = call.dtype(0) == DType::kF64 ? DType::kF64 : DType::kF32;
            ASSIGN_OR_RETURN(LoopBody body, ElementwiseBody(call, [&](const std::vector<Expr>& in) {
                               return Expr::Cast(in[0], work);
                             }));
            ASSIGN_OR_RETURN(const Expr number, UniformNumbers(body.axes, seed, 0, work));
            body.value = Expr::Cast(Expr::Binary(ScalarOp::kLt, number, body.value), type);
            return body;
          },
          .normalise = NormaliseRandomType};
}

}  // namespace fusion
