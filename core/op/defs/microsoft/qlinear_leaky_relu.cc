#include "core/op/forms/quantised.h"

namespace fusion {

/// y = x < 0 ? alpha * x : x of quantised x, quantised
OpDef DefineMicrosoftQlinearLeakyRelu() {
  return QuantisedUnaryOp("com.microsoft.QLinearLeakyRelu", DType::kF64,
                          {{.name = "alpha", .kind = ParamSpec::kFloat}},
                          [](Decomposition& d, Decomposition::Value x) {
                            return d.Apply("LeakyRelu", {x}, d.call().attrs());
                          });
}

}  // namespace fusion
