#include "core/op/forms.h"

namespace fusion {

/// y = Gelu(x + bias) by its tanh approximation; the bias, along the last dim, may be absent
OpDef DefineMicrosoftFastGelu() {
  return {.name = "com.microsoft.FastGelu",
          .max_inputs = 2,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            Decomposition::Value x = d.in(0);
            if (d.call().has_input(1)) {
              ASSIGN_OR_RETURN(x, PlusBias(d, x, 1));
            }
            return d.Apply("Gelu", {x}, {{"approximate", std::string("tanh")}});
          }};
}

}  // namespace fusion
