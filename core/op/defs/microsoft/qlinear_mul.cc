#include "core/op/forms/quantised.h"

namespace fusion {

/// c = a * b of quantised a and b, quantised
OpDef DefineMicrosoftQlinearMul() { return QuantisedBinaryOp("com.microsoft.QLinearMul", "Mul"); }

}  // namespace fusion
