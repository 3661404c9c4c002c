#include "core/op/forms.h"

namespace fusion {

/// y = (x - max x) - log sum e^(x - max x) along `axis`
OpDef DefineLogSoftmax() {
  return {.name = "LogSoftmax",
          .params = SoftmaxParams(),
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            ASSIGN_OR_RETURN(std::vector<int64_t> axes, SoftmaxAxes(d.call()));
            AttrMap over = {{"axes", axes}};
            ASSIGN_OR_RETURN(auto max, d.Apply("ReduceMax", {d.in(0)}, over));
            ASSIGN_OR_RETURN(auto shifted, d.Apply("Sub", {d.in(0), max}));
            ASSIGN_OR_RETURN(auto e, d.Apply("Exp", {shifted}));
            ASSIGN_OR_RETURN(auto sum, d.Apply("ReduceSum", {e}, over));
            ASSIGN_OR_RETURN(auto log, d.Apply("Log", {sum}));
            return d.Apply("Sub", {shifted, log});
          },
          .normalise = NormaliseSoftmax};
}

}  // namespace fusion
