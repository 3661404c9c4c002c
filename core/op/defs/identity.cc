#include "core/op/forms.h"

namespace fusion {

/// y = x
OpDef DefineIdentity() {
  return {.name = "Identity", .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            IndexMap index;
            for (int d = 0; d < call.shape(0).rank(); ++d) index.push_back(IndexExpr::Axis(d));
            return ViewBody(call, call.shape(0).dims(), std::move(index));
          }};
}

}  // namespace fusion
