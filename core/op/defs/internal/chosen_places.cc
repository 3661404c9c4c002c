#include "core/op/forms.h"
#include "core/op/indexed/opaque.h"

namespace fusion {

/// Where the elements of a list that are true are: ChosenPlaces
OpDef DefineChosenPlaces() {
  return {.name = ChosenPlaces::kName,
          .internal = true,
          .opaque = [](const OpCall& call) -> absl::StatusOr<TensorType> {
            ASSIGN_OR_RETURN(Dims dims, StaticDims(call, 0));
            if (call.dtype(0) != DType::kBool || dims.size() != 1) {
              return InvalidArgument("no places of ", call.in(0).ToString());
            }
            return TensorType{DType::kI64, Shape(dims)};
          }};
}

}  // namespace fusion
