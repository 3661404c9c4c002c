#include "core/op/forms.h"

namespace fusion {

/// y = the smallest input; NaN if any is NaN
OpDef DefineMin() { return VariadicOp("Min", ScalarOp::kMin); }

}  // namespace fusion
