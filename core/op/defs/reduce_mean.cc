#include "core/op/forms.h"

namespace fusion {

/// arithmetic mean over axes: the sum divided by the number of elements
OpDef DefineReduceMean() {
  return {.name = "ReduceMean",
          .params = ReduceParams(),
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            ASSIGN_OR_RETURN(std::vector<int> axes, ReduceAxes(call));
            int64_t count = 1;
            for (int axis : axes) {
              const Dim& extent = call.shape(0).dim(axis);
              if (!extent.is_static()) {
                return Unimplemented("mean over the symbolic dim ", extent.ToString());
              }
              count *= extent.value();
            }
            ASSIGN_OR_RETURN(auto sum, d.Apply("ReduceSum", {d.in(0)}, call.attrs()));
            return d.Apply("Div", {sum, d.Scalar(call.dtype(0), static_cast<double>(count))});
          }};
}

}  // namespace fusion
