#include "core/op/forms/quantised.h"

namespace fusion {

/// y = a b + bias of quantised a and b: inputs are a, b, their scales, their zero points and the
/// bias, along the last dim; scale and zero point of b for all or for each column. Those behind the
/// scales may be absent.
OpDef DefineMicrosoftMatMulIntegerToFloat() {
  return {.name = "com.microsoft.MatMulIntegerToFloat",
          .min_inputs = 4,
          .max_inputs = 7,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            ASSIGN_OR_RETURN(auto scale, QuantisationOf(d, 2, 0, 0, Dim(1)));
            return ProductToFloat(d, {.x = 0, .w = 1, .x_zero = 4, .w_zero = 5}, scale, 3, 6);
          }};
}

}  // namespace fusion
