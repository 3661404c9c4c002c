#include "core/op/forms.h"

namespace fusion {

/// sum of squares over axes
OpDef DefineReduceSumSquare() {
  return ReduceComposite(
      "ReduceSumSquare",
      [](Decomposition& d, const AttrMap& over) -> absl::StatusOr<Decomposition::Value> {
        ASSIGN_OR_RETURN(auto square, d.Apply("Mul", {d.in(0), d.in(0)}));
        return d.Apply("ReduceSum", {square}, over);
      });
}

}  // namespace fusion
