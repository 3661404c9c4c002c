#include "core/op/forms.h"

namespace fusion {

/// y = the number of elements of x, i64
OpDef DefineSize() {
  return {.name = "Size", .value_of_types = [](const OpCall& call) -> absl::StatusOr<HostTensor> {
            if (!call.shape(0).is_static()) {
              return Unimplemented("the shape ", call.shape(0).ToString(),
                                   " is symbolic; bind its dims");
            }
            return HostTensor::FromValues<int64_t>(DType::kI64, {},
                                                   {NumElements(call.shape(0).ToDims())});
          }};
}

}  // namespace fusion
