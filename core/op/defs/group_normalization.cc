#include "core/op/forms.h"

namespace fusion {

namespace {

// Before opset 21 scale and bias had one value for each group.
absl::Status NormaliseGroupNormalization(OnnxCall& call) {
  if (call.attrs.Has("scale_of_groups")) {
    return InvalidArgument("unknown attribute \"scale_of_groups\"");
  }
  if (call.opset < 21) call.attrs.Set("scale_of_groups", int64_t{1});
  return absl::OkStatus();
}

// The dims of x with the channels, dim 1, split into groups: what Reshape understands.
absl::StatusOr<Dims> GroupedChannels(const OpCall& call) {
  RETURN_IF_ERROR(call.CheckRankAtLeast(0, 2));
  RETURN_IF_ERROR(CheckFloat(call, 0));
  const Shape& shape = call.shape(0);
  const int64_t groups = call.attrs().Int("num_groups", 0);
  for (int d = 1; d < shape.rank(); ++d) {
    if (!shape.dim(d).is_static()) {
      return Unimplemented("groups of the symbolic dim ", shape.dim(d).ToString(), " of input 0 ",
                           call.in(0).ToString());
    }
  }
  const int64_t channels = shape.dim(1).value();
  if (groups < 1 || channels % groups != 0) {
    return InvalidArgument("attribute \"num_groups\" is ", groups, ", expected a divisor of the ",
                           channels, " channels of input 0 ", call.in(0).ToString());
  }
  const bool of_groups = call.attrs().Int("scale_of_groups", 0) != 0;
  for (int i = 1; i < 3; ++i) {
    RETURN_IF_ERROR(call.CheckSameType(0, i));
    if (call.shape(i) != Shape({of_groups ? groups : channels})) {
      return InvalidArgument("input ", i, " is ", call.in(i).ToString(),
                             ", expected one value for each of the ", of_groups ? groups : channels,
                             of_groups ? " groups" : " channels", " of input 0 ",
                             call.in(0).ToString());
    }
  }
  // 0: the batch as it is, be it symbolic.
  Dims dims = {0, groups, channels / groups};
  for (int d = 2; d < shape.rank(); ++d) dims.push_back(shape.dim(d).value());
  return dims;
}

// `values`, one for each group or channel, as they broadcast to the groups.
absl::StatusOr<Decomposition::Value> PerGroup(Decomposition& d, int input, const Dims& grouped) {
  const bool of_groups = d.call().attrs().Int("scale_of_groups", 0) != 0;
  Dims dims(grouped.size() - 1, 1);
  dims[0] = grouped[1];
  if (!of_groups) dims[1] = grouped[2];
  return d.Apply("Reshape", {d.in(input)}, {{"shape", dims}});
}

}  // namespace

/// y = (x - mean) / sqrt(variance + epsilon) * scale + bias; mean and variance of each of
/// `num_groups` groups of channels of each batch entry, scale and bias per channel (before opset 21
/// per group)
OpDef DefineGroupNormalization() {
  return {.name = "GroupNormalization",
          .min_inputs = 3,
          .max_inputs = 3,
          .params = {{.name = "num_groups", .kind = ParamSpec::kInt, .required = true},
                     {.name = "epsilon", .kind = ParamSpec::kFloat},
                     {.name = "stash_type", .kind = ParamSpec::kInt},
                     {.name = "scale_of_groups", .kind = ParamSpec::kInt}},
          .min_opset = 18,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            ASSIGN_OR_RETURN(Dims grouped, GroupedChannels(call));
            for (int i = 0; i < call.shape(0).rank(); ++i) {
              if (call.shape(0).dim(i) == Dim(0)) return d.Apply("Identity", {d.in(0)});
            }
            const DType type = call.dtype(0);
            const double epsilon = call.attrs().Float("epsilon", 1e-5);
            Dims axes;
            for (size_t i = 2; i < grouped.size(); ++i) axes.push_back(static_cast<int64_t>(i));
            ASSIGN_OR_RETURN(auto x, d.Apply("Reshape", {d.in(0)}, {{"shape", grouped}}));
            ASSIGN_OR_RETURN(x, CastTo(d, x, StatisticsType(type)));
            ASSIGN_OR_RETURN(auto y, Standardise(d, x, axes, epsilon));
            ASSIGN_OR_RETURN(y, CastTo(d, y, type));
            ASSIGN_OR_RETURN(auto scale, PerGroup(d, 1, grouped));
            ASSIGN_OR_RETURN(auto bias, PerGroup(d, 2, grouped));
            ASSIGN_OR_RETURN(y, d.Apply("Mul", {y, scale}));
            ASSIGN_OR_RETURN(y, d.Apply("Add", {y, bias}));
            Dims whole = {0, grouped[1] * grouped[2]};
            whole.insert(whole.end(), grouped.begin() + 3, grouped.end());
            return d.Apply("Reshape", {y}, {{"shape", whole}});
          },
          .normalise = NormaliseGroupNormalization};
}

}  // namespace fusion
