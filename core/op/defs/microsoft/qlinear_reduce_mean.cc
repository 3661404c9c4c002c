#include "core/op/forms.h"
#include "core/op/forms/quantised.h"

namespace fusion {

/// y = ReduceMean(x) of quantised x, quantised
OpDef DefineMicrosoftQlinearReduceMean() {
  return QuantisedUnaryOp(
      "com.microsoft.QLinearReduceMean", DType::kF64,
      {{.name = "axes", .kind = ParamSpec::kInts}, {.name = "keepdims", .kind = ParamSpec::kInt}},
      [](Decomposition& d, Decomposition::Value x) {
        return d.Apply("ReduceMean", {x}, d.call().attrs());
      });
}

}  // namespace fusion
