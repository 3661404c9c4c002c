#include "core/op/forms.h"

namespace fusion {

/// y = x * sigmoid(alpha x)
OpDef DefineSwish() {
  OpDef def = RealFunction("Swish", {"alpha"}, [](const AttrMap& attrs, const Expr& x) {
    return SwishOf(x, attrs.Float("alpha", 1));
  });
  def.min_opset = 24;
  return def;
}

}  // namespace fusion
