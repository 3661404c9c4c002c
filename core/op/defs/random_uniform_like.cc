#include "core/op/random_numbers.h"

namespace fusion {

/// y of x's shape and, without `dtype`, its type: numbers that follow from `seed` and the place of
/// an element (core/op/random_numbers.h), uniform in [low, high)
OpDef DefineRandomUniformLike() {
  return {.name = "RandomUniformLike",
          .min_inputs = 1,
          .max_inputs = 1,
          .params = RandomParams({"low", "high"}, /*like=*/true),
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            const AttrMap& attrs = call.attrs();
            auto value = [&](const Expr& u) {
              const Expr low = Expr::Const(u.type(), attrs.Float("low", 0));
              const Expr range =
                  Expr::Const(u.type(), attrs.Float("high", 1) - attrs.Float("low", 0));
              return low + u * range;
            };
            return RandomBody(call, /*like=*/true, value, /*normal=*/false);
          },
          .normalise = NormaliseRandomType};
}

}  // namespace fusion
