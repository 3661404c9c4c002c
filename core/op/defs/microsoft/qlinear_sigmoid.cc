#include "core/op/forms/quantised.h"

namespace fusion {

/// y = sigmoid(x) of quantised x, quantised
OpDef DefineMicrosoftQlinearSigmoid() {
  return QuantisedUnaryOp(
      "com.microsoft.QLinearSigmoid", DType::kF32, {},
      [](Decomposition& d, Decomposition::Value x) { return d.Apply("Sigmoid", {x}); });
}

}  // namespace fusion
