#include "core/op/forms.h"

namespace fusion {

/// y = x / 2 * (1 + erf(x / sqrt 2))
OpDef DefineMicrosoftGelu() {
  return {.name = "com.microsoft.Gelu",
          .decompose = [](Decomposition& d) { return d.Apply("Gelu", {d.in(0)}); }};
}

}  // namespace fusion
