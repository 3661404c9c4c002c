#include "core/op/forms.h"

namespace fusion {

/// y = blocks of pixels laid out as blocks of channels
OpDef DefineSpaceToDepth() {
  return {
      .name = "SpaceToDepth",
      .params = {{.name = "blocksize", .kind = ParamSpec::kInt, .required = true}},
      .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
        const OpCall& call = d.call();
        if (call.shape(0).rank() != 4 || !call.shape(0).is_static()) {
          return InvalidArgument("input 0 ", call.in(0).ToString(), ", expected four static dims");
        }
        Dims x = call.shape(0).ToDims();
        int64_t b = call.attrs().Int("blocksize", 1);
        if (b < 1 || x[2] % b != 0 || x[3] % b != 0) {
          return InvalidArgument("attribute \"blocksize\" is ", b, ", the spatial dims of ",
                                 call.in(0).ToString(), " do not divide by it");
        }
        int64_t h = x[2] / b;
        int64_t w = x[3] / b;
        ASSIGN_OR_RETURN(auto blocks,
                         d.Apply("Reshape", {d.in(0)}, {{"shape", Dims{x[0], x[1], h, b, w, b}}}));
        ASSIGN_OR_RETURN(auto turned,
                         d.Apply("Transpose", {blocks}, {{"perm", Dims{0, 3, 5, 1, 2, 4}}}));
        return d.Apply("Reshape", {turned}, {{"shape", Dims{x[0], x[1] * b * b, h, w}}});
      }};
}

}  // namespace fusion
