#include "core/op/forms.h"

namespace fusion {

/// y = blocks of pixels laid out as blocks of channels
OpDef DefineSpaceToDepth() {
  return {.name = "SpaceToDepth",
          .params = {{.name = "blocksize", .kind = ParamSpec::kInt, .required = true}},
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            ASSIGN_OR_RETURN(int64_t b, BlockSize(call));
            Dims x = call.shape(0).ToDims();
            if (x[2] % b != 0 || x[3] % b != 0) {
              return InvalidArgument("attribute \"blocksize\" is ", b, ", the spatial dims of ",
                                     call.in(0).ToString(), " do not divide by it");
            }
            int64_t h = x[2] / b;
            int64_t w = x[3] / b;
            return RegroupBlocks(d, {x[0], x[1], h, b, w, b}, {0, 3, 5, 1, 2, 4},
                                 {x[0], x[1] * b * b, h, w});
          }};
}

}  // namespace fusion
