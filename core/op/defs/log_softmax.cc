#include "core/op/forms.h"

namespace fusion {

/// y = (x - max x) - log sum e^(x - max x) along `axis`
OpDef DefineLogSoftmax() {
  return {.name = "LogSoftmax",
          .params = SoftmaxParams(),
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            ASSIGN_OR_RETURN(SoftmaxSteps x, ExponentialsOf(d));
            ASSIGN_OR_RETURN(auto log, d.Apply("Log", {x.sum}));
            return d.Apply("Sub", {x.shifted, log});
          },
          .normalise = NormaliseSoftmax};
}

}  // namespace fusion
