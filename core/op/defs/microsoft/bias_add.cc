#include "core/op/forms.h"

namespace fusion {

/// y = x + bias + skip, the bias along the last dim
OpDef DefineMicrosoftBiasAdd() {
  return {.name = "com.microsoft.BiasAdd",
          .min_inputs = 3,
          .max_inputs = 3,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            if (call.in(2) != call.in(0)) {
              return InvalidArgument("input 2 is ", call.in(2).ToString(), ", expected ",
                                     call.in(0).ToString(), ", the type of input 0");
            }
            ASSIGN_OR_RETURN(auto x, PlusBias(d, d.in(0), 1));
            return d.Apply("Add", {x, d.in(2)});
          }};
}

}  // namespace fusion
