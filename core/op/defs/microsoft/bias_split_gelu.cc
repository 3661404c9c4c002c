#include "core/op/forms.h"

namespace fusion {

/// y = a * Gelu(b), a and b the halves of x + bias along the last dim
OpDef DefineMicrosoftBiasSplitGelu() {
  return {.name = "com.microsoft.BiasSplitGelu",
          .min_inputs = 2,
          .max_inputs = 2,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            ASSIGN_OR_RETURN(auto x, PlusBias(d, d.in(0), 1));
            const int last = d.type(x).shape.rank() - 1;
            const Dim& extent = d.type(x).shape.dim(last);
            if (!extent.is_static() || extent.value() % 2 != 0) {
              return InvalidArgument("input 0 is ", d.call().in(0).ToString(),
                                     ", expected an even last dim");
            }
            const int64_t half = extent.value() / 2;
            ASSIGN_OR_RETURN(auto a, SliceAlong(d, x, last, 0, half));
            ASSIGN_OR_RETURN(auto b, SliceAlong(d, x, last, half, 2 * half));
            ASSIGN_OR_RETURN(b, d.Apply("Gelu", {b}));
            return d.Apply("Mul", {a, b});
          }};
}

}  // namespace fusion
