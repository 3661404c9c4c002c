#include "core/op/forms.h"

namespace fusion {

/// y = smallest integer >= x
OpDef DefineCeil() { return UnaryOp("Ceil", ScalarOp::kCeil); }

}  // namespace fusion
