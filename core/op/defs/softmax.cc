#include "core/op/forms.h"

namespace fusion {

/// y = e^(x - max x) / sum e^(x - max x) along `axis`
OpDef DefineSoftmax() {
  return {.name = "Softmax",
          .params = SoftmaxParams(),
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            ASSIGN_OR_RETURN(SoftmaxSteps x, ExponentialsOf(d));
            return d.Apply("Div", {x.exponentials, x.sum});
          },
          .normalise = NormaliseSoftmax};
}

}  // namespace fusion
