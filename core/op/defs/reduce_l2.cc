#include "core/op/forms.h"

namespace fusion {

/// square root of the sum of squares over axes
OpDef DefineReduceL2() {
  return ReduceComposite(
      "ReduceL2",
      [](Decomposition& d, const AttrMap& over) -> absl::StatusOr<Decomposition::Value> {
        RETURN_IF_ERROR(CheckFloatSupported(d.call()));
        ASSIGN_OR_RETURN(auto square, d.Apply("Mul", {d.in(0), d.in(0)}));
        ASSIGN_OR_RETURN(auto sum, d.Apply("ReduceSum", {square}, over));
        return d.Apply("Sqrt", {sum});
      });
}

}  // namespace fusion
