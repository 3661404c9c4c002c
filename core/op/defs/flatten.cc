#include "core/op/forms.h"

namespace fusion {

/// y = x as a matrix: the dims before `axis` by the dims from `axis` on
OpDef DefineFlatten() {
  static constexpr auto kShape = [](const OpCall& call) -> absl::StatusOr<Shape> {
    int rank = call.shape(0).rank();
    int64_t axis = call.attrs().Int("axis", 1);
    if (axis < -rank || axis > rank) {
      return InvalidArgument("axis ", axis, " out of range for rank ", rank);
    }
    if (axis < 0) axis += rank;
    if (!call.shape(0).is_static()) return Unimplemented("flatten of a symbolic shape");
    Dims dims = call.shape(0).ToDims();
    int64_t outer = NumElements(Dims(dims.begin(), dims.begin() + axis));
    int64_t inner = NumElements(Dims(dims.begin() + axis, dims.end()));
    return Shape{outer, inner};
  };
  return {.name = "Flatten",
          .params = {{.name = "axis", .kind = ParamSpec::kInt}},
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            ASSIGN_OR_RETURN(Shape shape, kShape(call));
            return ReshapeBody(call, shape);
          },
          .reinterpret = [](const OpCall& call) -> absl::StatusOr<TensorType> {
            ASSIGN_OR_RETURN(Shape shape, kShape(call));
            return TensorType{call.dtype(0), shape};
          }};
}

}  // namespace fusion
