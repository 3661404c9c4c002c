#include "core/op/forms.h"

namespace fusion {

/// c = a < b
OpDef DefineLess() { return BinaryOp("Less", ScalarOp::kLt); }

}  // namespace fusion
