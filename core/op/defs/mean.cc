#include "core/op/forms.h"

namespace fusion {

/// y = the mean of one or more inputs, with broadcasting
OpDef DefineMean() {
  return {.name = "Mean",
          .max_inputs = kMaxVariadicInputs,
          .min_opset = 6,  // until 8 without broadcasting
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            if (!IsFloat(call.dtype(0))) {
              return InvalidArgument("input 0 is ", DTypeName(call.dtype(0)),
                                     ", expected a float type");
            }
            std::vector<Decomposition::Value> inputs;
            for (int i = 0; i < call.inputs(); ++i) inputs.push_back(d.in(i));
            ASSIGN_OR_RETURN(auto sum, d.Apply("Sum", std::move(inputs)));
            return d.Apply("Div", {sum, d.Scalar(call.dtype(0), call.inputs())});
          }};
}

}  // namespace fusion
