#include "core/op/forms.h"

namespace fusion {

/// y = log(1 + e^x)
OpDef DefineSoftplus() {
  return RealFunction("Softplus", {}, [](const AttrMap&, const Expr& x) { return SoftplusOf(x); });
}

}  // namespace fusion
