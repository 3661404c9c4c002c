#include "core/op/forms.h"

namespace fusion {

/// y = a * sigmoid(alpha a) * b
OpDef DefineSwiGlu() {
  return {.name = "SwiGLU",
          .min_inputs = 2,
          .max_inputs = 2,
          .params = {{.name = "alpha", .kind = ParamSpec::kFloat}},
          .min_opset = 28,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            RETURN_IF_ERROR(call.CheckSameType(0, 1));
            if (call.shape(0) != call.shape(1)) {
              return InvalidArgument("inputs 0 and 1 are ", call.in(0).ToString(), " and ",
                                     call.in(1).ToString(), ", expected one shape");
            }
            ASSIGN_OR_RETURN(auto gate, d.Apply("Swish", {d.in(0)}, call.attrs()));
            return d.Apply("Mul", {gate, d.in(1)});
          }};
}

}  // namespace fusion
