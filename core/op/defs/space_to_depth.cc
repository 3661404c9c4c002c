#include "core/op/forms.h"

namespace fusion {

/// y = blocks of pixels laid out as blocks of channels: pixels first (`mode` DCR) or, with CRD, all
/// pixels of a channel together
OpDef DefineSpaceToDepth() {
  return {.name = "SpaceToDepth",
          .params = {{.name = "blocksize", .kind = ParamSpec::kInt, .required = true},
                     {.name = "mode", .kind = ParamSpec::kString}},
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
            const auto* mode = call.attrs().Find<std::string>("mode");
            const bool by_channel = mode != nullptr && *mode == "CRD";
            if (mode != nullptr && !by_channel && *mode != "DCR") {
              return InvalidArgument("attribute \"mode\" is ", QuoteShort(*mode),
                                     ", expected DCR or CRD");
            }
            const Dims perm = by_channel ? Dims{0, 1, 3, 5, 2, 4} : Dims{0, 3, 5, 1, 2, 4};
            return RegroupBlocks(d, {x[0], x[1], h, b, w, b}, perm, {x[0], x[1] * b * b, h, w});
          }};
}

}  // namespace fusion
