#include "core/op/cumulative.h"

#include "core/op/forms.h"

namespace fusion {
namespace {

// x moved by `by` elements along `axis`, towards the end if positive; `neutral` comes in.
absl::StatusOr<Decomposition::Value> Moved(Decomposition& d, Decomposition::Value x, int axis,
                                           int64_t by, double neutral) {
  const auto rank = static_cast<size_t>(d.type(x).shape.rank());
  Dims pads(2 * rank, 0);
  pads[static_cast<size_t>(axis)] = by;
  pads[static_cast<size_t>(axis) + rank] = -by;
  AttrMap attrs = {{"pads", pads}};
  if (neutral != 0) {
    HostTensor fill(d.type(x).dtype, {});
    fill.SetDouble(0, neutral);
    attrs.Set("constant_value", std::make_shared<const HostTensor>(std::move(fill)));
  }
  return d.Apply("Pad", {x}, std::move(attrs));
}

}  // namespace

OpDef CumulativeOp(std::string name, std::string op, double neutral) {
  return {.name = std::move(name),
          .params = {{.name = "axis", .kind = ParamSpec::kInts, .onnx_input = 1, .required = true},
                     {.name = "exclusive", .kind = ParamSpec::kInt},
                     {.name = "reverse", .kind = ParamSpec::kInt}},
          .min_opset = 11,
          .decompose = [op = std::move(op),
                        neutral](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            const std::vector<int64_t> axes = call.attrs().Ints("axis");
            if (axes.size() != 1) {
              return InvalidArgument("axis has ", axes.size(), " elements, expected 1");
            }
            ASSIGN_OR_RETURN(int axis, call.NormaliseAxis(axes[0], call.shape(0).rank()));
            const Dim& extent = call.shape(0).dim(axis);
            if (!extent.is_static()) {
              return Unimplemented(call.def().name, " along the symbolic dim ", extent.ToString());
            }
            const int64_t direction = call.attrs().Int("reverse", 0) != 0 ? -1 : 1;
            ASSIGN_OR_RETURN(Decomposition::Value y, d.Apply("Identity", {d.in(0)}));
            if (call.attrs().Int("exclusive", 0) != 0) {
              ASSIGN_OR_RETURN(y, Moved(d, y, axis, direction, neutral));
            }
            for (int64_t step = 1; step < extent.value(); step *= 2) {
              ASSIGN_OR_RETURN(auto before, Moved(d, y, axis, direction * step, neutral));
              ASSIGN_OR_RETURN(y, d.Apply(op, {y, before}));
            }
            return y;
          }};
}

}  // namespace fusion
