#include "core/op/forms.h"

namespace fusion {

/// arithmetic mean over axes: the sum divided by the number of elements, of 16-bit floats in f32,
/// which can count more of them
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
            const DType type = call.dtype(0);
            const DType wide = IsHalf(type) ? DType::kF32 : type;
            ASSIGN_OR_RETURN(auto x, CastTo(d, d.in(0), wide));
            ASSIGN_OR_RETURN(auto sum, d.Apply("ReduceSum", {x}, call.attrs()));
            ASSIGN_OR_RETURN(auto mean,
                             d.Apply("Div", {sum, d.Scalar(wide, static_cast<double>(count))}));
            return CastTo(d, mean, type);
          }};
}

}  // namespace fusion
