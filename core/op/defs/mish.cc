#include "core/op/forms.h"

namespace fusion {

/// y = x * tanh(log(1 + e^x))
OpDef DefineMish() {
  return RealFunction("Mish", {}, [](const AttrMap&, const Expr& x) {
    return x * Expr::Unary(ScalarOp::kTanh, SoftplusOf(x));
  });
}

}  // namespace fusion
