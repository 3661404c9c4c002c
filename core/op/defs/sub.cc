#include "core/op/forms.h"

namespace fusion {

/// c = a - b
OpDef DefineSub() { return BinaryOp("Sub", ScalarOp::kSub); }

}  // namespace fusion
