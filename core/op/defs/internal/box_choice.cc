#include "core/op/forms.h"
#include "core/op/indexed/opaque.h"

namespace fusion {

/// The boxes that suppression leaves of each batch and class: BoxChoice
OpDef DefineBoxChoice() {
  return {.name = BoxChoice::kName,
          .min_inputs = 3,
          .max_inputs = 4,
          .params = {{.name = "count", .kind = ParamSpec::kInt, .required = true},
                     {.name = "centred", .kind = ParamSpec::kInt},
                     {.name = "limited", .kind = ParamSpec::kInt}},
          .internal = true,
          .opaque = [](const OpCall& call) -> absl::StatusOr<TensorType> {
            ASSIGN_OR_RETURN(Dims boxes, StaticDims(call, 0));
            ASSIGN_OR_RETURN(Dims scores, StaticDims(call, 1));
            const bool fits = boxes.size() == 3 && scores.size() == 3 && boxes[2] == 4 &&
                              boxes[0] == scores[0] && boxes[1] == scores[2];
            const int64_t count = call.attrs().Int("count", 0);
            const bool limited = call.attrs().Int("limited", 0) != 0;
            bool numbers = fits && limited == call.has_input(3);
            for (int i = 0; i < call.inputs(); ++i) numbers &= call.dtype(i) == DType::kF32;
            for (int i = 2; i < call.inputs(); ++i) numbers &= call.shape(i).rank() == 0;
            if (!numbers || count < 0 || count > scores[2]) {
              return InvalidArgument("no choice of ", count, " boxes from ", call.in(0).ToString(),
                                     " by ", call.in(1).ToString());
            }
            return TensorType{DType::kI64, Shape(Dims{scores[0], scores[1], count})};
          }};
}

}  // namespace fusion
