#include "core/op/forms.h"

namespace fusion {

/// y = nearest integer, ties to even
OpDef DefineRound() { return UnaryOp("Round", ScalarOp::kRound); }

}  // namespace fusion
