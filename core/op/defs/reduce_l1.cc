#include "core/op/forms.h"

namespace fusion {

/// sum of magnitudes over axes
OpDef DefineReduceL1() {
  return ReduceComposite(
      "ReduceL1",
      [](Decomposition& d, const AttrMap& over) -> absl::StatusOr<Decomposition::Value> {
        ASSIGN_OR_RETURN(auto magnitude, d.Apply("Abs", {d.in(0)}));
        return d.Apply("ReduceSum", {magnitude}, over);
      });
}

}  // namespace fusion
