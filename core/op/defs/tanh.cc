#include "core/op/forms.h"

namespace fusion {

/// y = tanh x
OpDef DefineTanh() { return UnaryOp("Tanh", ScalarOp::kTanh); }

}  // namespace fusion
