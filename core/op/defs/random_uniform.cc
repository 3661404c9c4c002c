#include "core/op/random_numbers.h"

namespace fusion {

/// y of `shape`: numbers that follow from `seed` and the place of an element
/// (core/op/random_numbers.h), uniform in [low, high)
OpDef DefineRandomUniform() {
  return {.name = "RandomUniform",
          .min_inputs = 0,
          .max_inputs = 0,
          .params = RandomParams({"low", "high"}, /*like=*/false),
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            const AttrMap& attrs = call.attrs();
            auto value = [&](const Expr& u) {
              const Expr low = Expr::Const(u.type(), attrs.Float("low", 0));
              const Expr range =
                  Expr::Const(u.type(), attrs.Float("high", 1) - attrs.Float("low", 0));
              return low + u * range;
            };
            return RandomBody(call, /*like=*/false, value, /*normal=*/false);
          },
          .normalise = NormaliseRandomType};
}

}  // namespace fusion
