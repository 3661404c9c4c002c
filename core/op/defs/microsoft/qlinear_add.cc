#include "core/op/forms/quantised.h"

namespace fusion {

/// c = a + b of quantised a and b, quantised
OpDef DefineMicrosoftQlinearAdd() { return QuantisedBinaryOp("com.microsoft.QLinearAdd", "Add"); }

}  // namespace fusion
