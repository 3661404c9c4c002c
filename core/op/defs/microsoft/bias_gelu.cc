#include "core/op/forms.h"

namespace fusion {

/// y = Gelu(x + bias), the bias along the last dim
OpDef DefineMicrosoftBiasGelu() {
  return {.name = "com.microsoft.BiasGelu",
          .min_inputs = 2,
          .max_inputs = 2,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            ASSIGN_OR_RETURN(auto x, PlusBias(d, d.in(0), 1));
            return d.Apply("Gelu", {x});
          }};
}

}  // namespace fusion
