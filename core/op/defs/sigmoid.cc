#include "core/op/forms.h"

namespace fusion {

/// y = 1 / (1 + e^-x)
OpDef DefineSigmoid() { return UnaryOp("Sigmoid", ScalarOp::kSigmoid); }

}  // namespace fusion
