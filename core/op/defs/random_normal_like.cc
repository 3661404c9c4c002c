#include "core/op/random_numbers.h"

namespace fusion {

/// y of x's shape and, without `dtype`, its type: numbers that follow from `seed` and the place of
/// an element (core/op/random_numbers.h), normal with `mean` and deviation `scale`
OpDef DefineRandomNormalLike() {
  return {.name = "RandomNormalLike",
          .min_inputs = 1,
          .max_inputs = 1,
          .params = RandomParams({"mean", "scale"}, /*like=*/true),
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            const AttrMap& attrs = call.attrs();
            auto value = [&](const Expr& u) {
              const Expr mean = Expr::Const(u.type(), attrs.Float("mean", 0));
              return mean + u * Expr::Const(u.type(), attrs.Float("scale", 1));
            };
            return RandomBody(call, /*like=*/true, value, /*normal=*/true);
          },
          .normalise = NormaliseRandomType};
}

}  // namespace fusion
