#include <cmath>

#include "core/op/forms.h"

namespace fusion {

namespace {

// The constant input "depth": one number.
absl::StatusOr<int64_t> DepthOf(const OpCall& call) {
  const HostTensor& depth = **call.attrs().Find<std::shared_ptr<const HostTensor>>("depth");
  const double value = depth.elements() == 1 ? depth.GetDouble(0) : -1;
  if (!(value >= 0 && value <= static_cast<double>(kMaxExtent)) || std::floor(value) != value) {
    return InvalidArgument("depth is ", DTypeName(depth.dtype()), DimsToString(depth.dims()),
                           depth.elements() == 1 ? StrCat(" ", value) : "",
                           ", expected one whole number from 0 to ", kMaxExtent);
  }
  return static_cast<int64_t>(value);
}

}  // namespace

/// y[.., k, ..] = values[1] if indices[..] is k, else values[0], with a new dim of extent `depth`
/// (a constant) at `axis`; negative indices count from the end
OpDef DefineOneHot() {
  return {
      .name = "OneHot",
      .min_inputs = 2,
      .max_inputs = 2,
      .params = {{.name = "axis", .kind = ParamSpec::kInt},
                 {.name = "depth", .kind = ParamSpec::kTensor, .onnx_input = 1, .required = true}},
      .min_opset = 9,
      .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
        const OpCall& call = d.call();
        ASSIGN_OR_RETURN(int64_t depth, DepthOf(call));
        if (call.shape(1) != Shape({Dim(2)})) {
          return InvalidArgument("values are ", call.in(1).ToString(),
                                 ", expected two: where the index is another one, where it is it");
        }
        ASSIGN_OR_RETURN(auto indices, CastTo(d, d.in(0), DType::kI64));
        ASSIGN_OR_RETURN(auto hit,
                         d.Apply("MatchIndex", {indices},
                                 {{"axis", call.attrs().Int("axis", -1)}, {"depth", depth}}));
        auto value = [&](int64_t which) {
          HostTensor at(DType::kI64, {});
          at.SetInt(0, which);
          return d.Apply("Gather", {d.in(1), d.Constant(std::move(at))});
        };
        ASSIGN_OR_RETURN(auto on, value(1));
        ASSIGN_OR_RETURN(auto off, value(0));
        return d.Apply("Where", {hit, on, off});
      }};
}

}  // namespace fusion
