#include "core/op/forms.h"

namespace fusion {

/// y = e^(x - max x) / sum e^(x - max x) along `axis`; the maximum is taken out so that no
/// exponential overflows
OpDef DefineSoftmax() {
  return {.name = "Softmax",
          .params = SoftmaxParams(),
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            ASSIGN_OR_RETURN(std::vector<int64_t> axes, SoftmaxAxes(d.call()));
            AttrMap over = {{"axes", axes}};
            ASSIGN_OR_RETURN(auto max, d.Apply("ReduceMax", {d.in(0)}, over));
            ASSIGN_OR_RETURN(auto shifted, d.Apply("Sub", {d.in(0), max}));
            ASSIGN_OR_RETURN(auto e, d.Apply("Exp", {shifted}));
            ASSIGN_OR_RETURN(auto sum, d.Apply("ReduceSum", {e}, over));
            return d.Apply("Div", {e, sum});
          },
          .normalise = NormaliseSoftmax};
}

}  // namespace fusion
