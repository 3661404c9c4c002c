#include "core/op/forms.h"

namespace fusion {

/// y = x divided by the norm of its row along `axis`: the sum of magnitudes (p = 1) or the root of
/// the sum of squares (p = 2); 0 where that is 0
OpDef DefineLpNormalization() {
  return {
      .name = "LpNormalization",
      .params = {{.name = "axis", .kind = ParamSpec::kInt}, {.name = "p", .kind = ParamSpec::kInt}},
      .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
        const OpCall& call = d.call();
        if (!IsFloat(call.dtype(0))) {
          return InvalidArgument("input 0 is ", DTypeName(call.dtype(0)),
                                 ", expected a float type");
        }
        int64_t p = call.attrs().Int("p", 2);
        if (p != 1 && p != 2) return InvalidArgument("p is ", p, ", expected 1 or 2");
        ASSIGN_OR_RETURN(int axis,
                         call.NormaliseAxis(call.attrs().Int("axis", -1), call.shape(0).rank()));
        AttrMap over = {{"axes", std::vector<int64_t>{axis}}};
        ASSIGN_OR_RETURN(auto norm, d.Apply(p == 1 ? "ReduceL1" : "ReduceL2", {d.in(0)}, over));
        const Decomposition::Value zero = d.Scalar(call.dtype(0), 0);
        ASSIGN_OR_RETURN(auto nothing, d.Apply("Equal", {norm, zero}));
        ASSIGN_OR_RETURN(auto y, d.Apply("Div", {d.in(0), norm}));
        return d.Apply("Where", {nothing, zero, y});
      }};
}

}  // namespace fusion
