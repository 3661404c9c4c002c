#include "core/op/forms.h"

namespace fusion {

/// y = softmax(x + bias) over the dims from `axis` on; whether the bias is broadcast over the inner
/// or the outer dims before them, its extents of 1 say as well as `is_inner_broadcast`
OpDef DefineMicrosoftBiasSoftmax() {
  return {.name = "com.microsoft.BiasSoftmax",
          .min_inputs = 2,
          .max_inputs = 2,
          .params = {{.name = "axis", .kind = ParamSpec::kInt},
                     {.name = "is_inner_broadcast", .kind = ParamSpec::kInt, .required = true}},
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            ASSIGN_OR_RETURN(auto x, d.Apply("Add", {d.in(0), d.in(1)}));
            if (d.type(x) != call.in(0)) {
              return InvalidArgument("input 1 is ", call.in(1).ToString(),
                                     ", expected a bias that broadcasts to input 0 ",
                                     call.in(0).ToString());
            }
            return d.Apply("Softmax", {x},
                           {{"axis", call.attrs().Int("axis", 1)}, {"flatten", int64_t{1}}});
          }};
}

}  // namespace fusion
