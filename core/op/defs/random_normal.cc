#include "core/op/random_numbers.h"

namespace fusion {

/// y of `shape`: numbers that follow from `seed` and the place of an element
/// (core/op/random_numbers.h), normal with `mean` and deviation `scale`
OpDef DefineRandomNormal() {
  return {.name = "RandomNormal",
          .min_inputs = 0,
          .max_inputs = 0,
          .params = RandomParams({"mean", "scale"}, /*like=*/false),
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            const AttrMap& attrs = call.attrs();
            auto value = [&](const Expr& u) {
              const Expr mean = Expr::Const(u.type(), attrs.Float("mean", 0));
              return mean + u * Expr::Const(u.type(), attrs.Float("scale", 1));
            };
            return RandomBody(call, /*like=*/false, value, /*normal=*/true);
          },
          .normalise = NormaliseRandomType};
}

}  // namespace fusion
