#include "core/op/forms.h"

namespace fusion {

/// y = x * sigmoid(alpha * x)
OpDef DefineMicrosoftQuickGelu() {
  return RealFunction(
      "com.microsoft.QuickGelu", {"alpha"},
      [](const AttrMap& attrs, const Expr& x) { return SwishOf(x, attrs.Float("alpha", 1.702)); });
}

}  // namespace fusion
