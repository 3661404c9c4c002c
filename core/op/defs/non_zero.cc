#include "core/op/forms.h"
#include "core/op/indexed/selection.h"

namespace fusion {

/// y[d, k] = the coordinate along dim d of the k-th element of x, in row-major order, that is not
/// 0; a scalar has no coordinates. A run decides how many there are.
OpDef DefineNonZero() {
  return {.name = "NonZero",
          .min_opset = 9,
          .max_outputs = 2,
          .counted =
              [](const OpCall&) {
                return std::vector<OpDef::Counted>{{0, 1}};
              },
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            ASSIGN_OR_RETURN(Dims dims, StaticDims(d.call(), 0));
            ASSIGN_OR_RETURN(auto chosen, CastTo(d, d.in(0), DType::kBool));
            ASSIGN_OR_RETURN(chosen, Flattened(d, chosen));
            ASSIGN_OR_RETURN(Selection found, ChosenElements(d, chosen));
            d.SetOutput(1, found.count);
            if (dims.empty()) return d.Constant(HostTensor(DType::kI64, {0, 1}));
            return CoordinatesOf(d, found.places, dims, 0);
          }};
}

}  // namespace fusion
