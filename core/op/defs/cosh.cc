#include "core/op/forms.h"

namespace fusion {

/// y = (e^x + e^-x) / 2
OpDef DefineCosh() {
  return RealFunction("Cosh", {},
                      [](const AttrMap&, const Expr& x) { return HyperbolicCosine(x); });
}

}  // namespace fusion
