#include "core/op/forms.h"
#include "core/op/forms/quantised.h"

namespace fusion {

/// z = condition ? x : y of quantised x and y, quantised
OpDef DefineMicrosoftQlinearWhere() {
  return {
      .name = "com.microsoft.QLinearWhere",
      .min_inputs = 9,
      .max_inputs = 9,
      .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
        RETURN_IF_ERROR(d.call().CheckSameType(1, 4));
        ASSIGN_OR_RETURN(auto x, Dequantised(d, {.value = 1, .scale = 2, .zero = 3}, DType::kF64));
        ASSIGN_OR_RETURN(auto y, Dequantised(d, {.value = 4, .scale = 5, .zero = 6}, DType::kF64));
        ASSIGN_OR_RETURN(auto z, d.Apply("Where", {d.in(0), x, y}));
        return QuantisedBy(d, z, 7, 8, d.call().dtype(1));
      }};
}

}  // namespace fusion
