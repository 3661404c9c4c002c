#include "core/op/forms.h"

namespace fusion {

/// logarithm of the sum over axes
OpDef DefineReduceLogSum() {
  return ReduceComposite(
      "ReduceLogSum",
      [](Decomposition& d, const AttrMap& over) -> absl::StatusOr<Decomposition::Value> {
        RETURN_IF_ERROR(CheckFloatSupported(d.call()));
        ASSIGN_OR_RETURN(auto sum, d.Apply("ReduceSum", {d.in(0)}, over));
        return d.Apply("Log", {sum});
      });
}

}  // namespace fusion
