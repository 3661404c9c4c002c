#include "core/op/forms.h"

namespace fusion {

/// ONNX's GatherND without batch dims, its indices i32 or i64
OpDef DefineMicrosoftGatherNd() {
  return {.name = "com.microsoft.GatherND",
          .min_inputs = 2,
          .max_inputs = 2,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            auto indices = d.in(1);
            if (d.call().dtype(1) == DType::kI32) {
              ASSIGN_OR_RETURN(indices, CastTo(d, indices, DType::kI64));
            }
            return d.Apply("GatherND", {d.in(0), indices});
          }};
}

}  // namespace fusion
