#include "core/op/forms.h"

namespace fusion {

namespace {

// Before opset 13 the input was flattened to two dims at `axis` (default 1) and normalised over the
// second.
absl::Status NormaliseSoftmax(OnnxCall& call) {
  if (call.attrs.Has("flatten")) return InvalidArgument("unknown attribute \"flatten\"");
  if (call.opset < 13) {
    if (!call.attrs.Has("axis")) call.attrs.Set("axis", int64_t{1});
    call.attrs.Set("flatten", int64_t{1});
  }
  return absl::OkStatus();
}

}  // namespace

/// y = e^(x - max x) / sum e^(x - max x) along `axis`; the maximum is taken out so that no
/// exponential overflows
OpDef DefineSoftmax() {
  return {.name = "Softmax",
          .params = {{.name = "axis", .kind = ParamSpec::kInt},
                     {.name = "flatten", .kind = ParamSpec::kInt}},
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            int rank = call.shape(0).rank();
            ASSIGN_OR_RETURN(int axis, call.NormaliseAxis(call.attrs().Int("axis", -1), rank));
            std::vector<int64_t> axes = {axis};
            if (call.attrs().Int("flatten", 0) != 0) {
              for (int i = axis + 1; i < rank; ++i) axes.push_back(i);
            }
            AttrMap over = {{"axes", axes}};
            ASSIGN_OR_RETURN(auto max, d.Apply("ReduceMax", {d.in(0)}, over));
            ASSIGN_OR_RETURN(auto shifted, d.Apply("Sub", {d.in(0), max}));
            ASSIGN_OR_RETURN(auto e, d.Apply("Exp", {shifted}));
            ASSIGN_OR_RETURN(auto sum, d.Apply("ReduceSum", {e}, over));
            return d.Apply("Div", {e, sum});
          },
          .normalise = NormaliseSoftmax};
}

}  // namespace fusion
