#include "core/op/forms.h"
#include "core/op/forms/quantised.h"

namespace fusion {

/// c = a b of quantised a and b, quantised: inputs are a, its scale and zero point (for all or for
/// each row), b, its scale and zero point (for all or for each column), scale and zero point of c
OpDef DefineQlinearMatmul() {
  return {.name = "QLinearMatMul",
          .min_inputs = 8,
          .max_inputs = 8,
          .min_opset = 10,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            ASSIGN_OR_RETURN(auto sums,
                             QuantisedProduct(d, {.x = 0, .w = 3, .x_zero = 2, .w_zero = 5}));
            const int rank = d.type(sums).shape.rank();
            auto scale_of = [&](int input, int operand) -> absl::StatusOr<Decomposition::Value> {
              const Shape& shape = call.shape(operand);
              const int back = operand == 0 ? 2 : 1;
              if (shape.rank() < back) return QuantisationOf(d, input, 0, 0, Dim(1));
              return QuantisationOf(d, input, rank, rank - back, shape.dim(shape.rank() - back));
            };
            ASSIGN_OR_RETURN(auto a_scale, scale_of(1, 0));
            ASSIGN_OR_RETURN(auto b_scale, scale_of(4, 3));
            ASSIGN_OR_RETURN(a_scale, d.Apply("Mul", {a_scale, b_scale}));
            return Requantised(d, sums, a_scale, 6, 7);
          }};
}

}  // namespace fusion
