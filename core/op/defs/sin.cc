#include "core/op/forms.h"

namespace fusion {

/// y = sin x
OpDef DefineSin() { return UnaryOp("Sin", ScalarOp::kSin); }

}  // namespace fusion
