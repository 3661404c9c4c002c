#include "core/op/indexed/cumulative.h"

#include "core/op/forms.h"
#include "core/op/indexed/opaque.h"

namespace fusion {

OpDef CumulativeOp(std::string name, std::string monoid) {
  return {.name = std::move(name),
          .params = {{.name = "axis", .kind = ParamSpec::kInts, .onnx_input = 1, .required = true},
                     {.name = "exclusive", .kind = ParamSpec::kInt},
                     {.name = "reverse", .kind = ParamSpec::kInt}},
          .min_opset = 11,
          .decompose = [monoid = std::move(monoid)](
                           Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            const std::vector<int64_t> axes = call.attrs().Ints("axis");
            if (axes.size() != 1) {
              return InvalidArgument("axis has ", axes.size(), " elements, expected 1");
            }
            ASSIGN_OR_RETURN(int axis, call.NormaliseAxis(axes[0], call.shape(0).rank()));
            ASSIGN_OR_RETURN(const DType wide, WideType(call, 0));
            ASSIGN_OR_RETURN(Decomposition::Value x, CastTo(d, d.in(0), wide));
            ASSIGN_OR_RETURN(x, d.Apply(RunningFold::kName, {x},
                                        {{"axis", int64_t{axis}},
                                         {"monoid", monoid},
                                         {"exclusive", call.attrs().Int("exclusive", 0)},
                                         {"reverse", call.attrs().Int("reverse", 0)}}));
            return CastTo(d, x, call.dtype(0));
          }};
}

}  // namespace fusion
