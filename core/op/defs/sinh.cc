#include "core/op/forms.h"

namespace fusion {

/// y = (e^x - e^-x) / 2
OpDef DefineSinh() {
  return RealFunction("Sinh", {}, [](const AttrMap&, const Expr& x) {
    // The difference would cancel near 0.
    return Expr::Unary(ScalarOp::kTanh, x) * HyperbolicCosine(x);
  });
}

}  // namespace fusion
