#include "core/op/forms.h"

namespace fusion {

/// y = blocks of channels laid out as blocks of pixels (mode DCR or CRD)
OpDef DefineDepthToSpace() {
  return {.name = "DepthToSpace",
          .params = {{.name = "blocksize", .kind = ParamSpec::kInt, .required = true},
                     {.name = "mode", .kind = ParamSpec::kString}},
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            const auto* mode = call.attrs().Find<std::string>("mode");
            bool crd = mode != nullptr && *mode == "CRD";
            if (mode != nullptr && !crd && *mode != "DCR") {
              return InvalidArgument("attribute \"mode\" is ", QuoteShort(*mode),
                                     ", expected DCR or CRD");
            }
            ASSIGN_OR_RETURN(int64_t b, BlockSize(call));
            Dims x = call.shape(0).ToDims();
            if (x[1] % (b * b) != 0) {
              return InvalidArgument("attribute \"blocksize\" is ", b, ", ", x[1],
                                     " channels do not divide by its square");
            }
            int64_t c = x[1] / (b * b);
            Dims split = crd ? Dims{x[0], c, b, b, x[2], x[3]} : Dims{x[0], b, b, c, x[2], x[3]};
            Dims perm = crd ? Dims{0, 1, 4, 2, 5, 3} : Dims{0, 3, 4, 1, 5, 2};
            return RegroupBlocks(d, split, perm, {x[0], c, x[2] * b, x[3] * b});
          }};
}

}  // namespace fusion
