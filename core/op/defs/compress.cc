#include "core/op/forms.h"
#include "core/op/indexed/selection.h"

namespace fusion {

/// The parts of x along `axis` (absent: of its elements in row-major order) at which the bools of
/// input 1 are true; it may have fewer elements than x, or more. A run decides how many there are.
OpDef DefineCompress() {
  return {.name = "Compress",
          .min_inputs = 2,
          .max_inputs = 2,
          .params = {{.name = "axis", .kind = ParamSpec::kInt}},
          .min_opset = 9,
          .max_outputs = 2,
          .counted =
              [](const OpCall& call) {
                auto axis = call.NormaliseAxis(call.attrs().Int("axis", 0), call.shape(0).rank());
                const bool along = call.attrs().Has("axis") && axis.ok();
                return std::vector<OpDef::Counted>{{0, along ? *axis : 0}};
              },
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            RETURN_IF_ERROR(StaticDims(call, 0).status());
            RETURN_IF_ERROR(StaticDims(call, 1).status());
            if (call.dtype(1) != DType::kBool || call.shape(1).rank() != 1) {
              return InvalidArgument("input 1 is ", call.in(1).ToString(), ", expected bool[n]");
            }
            int axis = 0;
            auto data = d.in(0);
            if (call.attrs().Has("axis")) {
              ASSIGN_OR_RETURN(
                  axis, call.NormaliseAxis(call.attrs().Int("axis", 0), call.shape(0).rank()));
            } else {
              ASSIGN_OR_RETURN(data, Flattened(d, data));
            }
            const int64_t most =
                std::min(d.type(data).shape.dim(axis).value(), call.shape(1).dim(0).value());
            ASSIGN_OR_RETURN(auto chosen, SliceAlong(d, d.in(1), 0, 0, most));
            ASSIGN_OR_RETURN(Selection found, ChosenElements(d, chosen));
            d.SetOutput(1, found.count);
            ASSIGN_OR_RETURN(auto y,
                             d.Apply("Gather", {data, found.places}, {{"axis", int64_t{axis}}}));
            if (IsFloat(call.dtype(0))) return y;
            // Where nothing counts, it is no index that another tensor lacks.
            ASSIGN_OR_RETURN(auto some, CastTo(d, found.count, DType::kBool));
            return d.Apply("Where", {some, y, d.Scalar(call.dtype(0), 0)});
          }};
}

}  // namespace fusion
