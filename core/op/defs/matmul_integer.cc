#include "core/op/forms/quantised.h"

namespace fusion {

/// c = (a - zero point of a) (b - zero point of b) in i32; zero points for all, for each row of a,
/// for each column of b
OpDef DefineMatmulInteger() {
  return {.name = "MatMulInteger",
          .min_inputs = 2,
          .max_inputs = 4,
          .min_opset = 10,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            return QuantisedProduct(d, {.x = 0, .w = 1, .x_zero = 2, .w_zero = 3});
          }};
}

}  // namespace fusion
