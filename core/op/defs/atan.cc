#include "core/op/forms.h"
#include "core/op/indexed/inverse_functions.h"

namespace fusion {

/// y = arctan x
OpDef DefineAtan() {
  return RealFunction("Atan", {}, [](const AttrMap&, const Expr& x) { return ArcTangent(x); });
}

}  // namespace fusion
