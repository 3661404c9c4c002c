#include "core/op/forms.h"
#include "core/op/forms/quantised.h"

namespace fusion {

/// y = q(a) b + bias, q being DynamicQuantizeLinear and b quantised: inputs are a, b, scale and
/// zero point of b (for all or for each column), the bias along the last dim; the last two may be
/// absent
OpDef DefineMicrosoftDynamicQuantizeMatMul() {
  return {.name = "com.microsoft.DynamicQuantizeMatMul",
          .min_inputs = 3,
          .max_inputs = 5,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            RETURN_IF_ERROR(CheckQuantised(call, 1));
            RETURN_IF_ERROR(call.CheckRankAtLeast(1, 2));
            ASSIGN_OR_RETURN(auto a, d.ApplyMulti("DynamicQuantizeLinear", {d.in(0)}, {}, 3));
            ASSIGN_OR_RETURN(auto x, WithoutZeroPoint(d, a[0], a[2]));
            const int rank = call.shape(1).rank();
            const Dim& columns = call.shape(1).dim(rank - 1);
            Decomposition::Value zero = -1;
            if (call.has_input(3)) {
              RETURN_IF_ERROR(call.CheckSameType(1, 3));
              ASSIGN_OR_RETURN(zero, QuantisationOf(d, 3, rank, rank - 1, columns));
            }
            ASSIGN_OR_RETURN(auto w, WithoutZeroPoint(d, d.in(1), zero));
            ASSIGN_OR_RETURN(auto y, d.Apply("MatMul", {x, w}));
            ASSIGN_OR_RETURN(auto scale, ProductScale(d, a[1], 1, 2, d.type(y).shape.rank()));
            ASSIGN_OR_RETURN(y, CastTo(d, y, DType::kF32));
            ASSIGN_OR_RETURN(y, d.Apply("Mul", {y, scale}));
            return call.has_input(4) ? PlusBias(d, y, 4) : y;
          }};
}

}  // namespace fusion
