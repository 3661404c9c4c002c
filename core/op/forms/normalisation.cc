#include "core/op/forms/normalisation.h"

namespace fusion {

absl::StatusOr<Decomposition::Value> SkipSum(Decomposition& d, int bias) {
  const OpCall& call = d.call();
  RETURN_IF_ERROR(CheckFloat(call, 0));
  RETURN_IF_ERROR(call.CheckRankAtLeast(0, 2));
  const Dim& width = call.shape(0).dim(call.shape(0).rank() - 1);
  for (int i = 2; i < call.inputs(); ++i) {
    if (call.has_input(i) && call.shape(i) != Shape({width})) {
      return InvalidArgument("input ", i, " is ", call.in(i).ToString(), ", expected the ",
                             width.ToString(), " elements of the last dim of input 0 ",
                             call.in(0).ToString());
    }
  }
  ASSIGN_OR_RETURN(auto sum, d.Apply("Add", {d.in(0), d.in(1)}));
  if (d.type(sum) != call.in(0)) {
    return InvalidArgument("input 1 is ", call.in(1).ToString(),
                           ", expected what broadcasts to input 0 ", call.in(0).ToString());
  }
  return call.has_input(bias) ? PlusBias(d, sum, bias) : sum;
}

AttrMap SkipNormAttrs(const OpCall& call) {
  return {{"axis", int64_t{-1}}, {"epsilon", call.attrs().Float("epsilon", 1e-12F)}};
}

std::vector<ParamSpec> GroupNormParams() {
  return {{.name = "groups", .kind = ParamSpec::kInt, .required = true},
          {.name = "activation", .kind = ParamSpec::kInt, .required = true},
          {.name = "channels_last", .kind = ParamSpec::kInt},
          {.name = "epsilon", .kind = ParamSpec::kFloat}};
}

absl::StatusOr<Decomposition::Value> GroupNormalised(Decomposition& d, Decomposition::Value x) {
  const OpCall& call = d.call();
  const TensorType type = d.type(x);
  const int64_t groups = call.attrs().Int("groups", 0);
  const int64_t activation = call.attrs().Int("activation", 0);
  if (!IsFloat(type.dtype) || type.shape.rank() != 4 || !type.shape.is_static() || groups < 1 ||
      type.shape.dim(3).value() % groups != 0) {
    return InvalidArgument("input 0 is ", call.in(0).ToString(),
                           ", expected four dims of a float type, its channels a multiple of "
                           "attribute \"groups\" (",
                           groups, ")");
  }
  if (activation != 0 && activation != 1) {
    return InvalidArgument("attribute \"activation\" is ", activation, ", expected 0 or 1");
  }
  const Dims dims = type.shape.ToDims();
  for (int i = 1; i < 3; ++i) {
    RETURN_IF_ERROR(CheckFloat(call, i));
    if (call.shape(i) != Shape({dims[3]})) {
      return InvalidArgument("input ", i, " is ", call.in(i).ToString(), ", expected ", dims[3],
                             " elements, one for each channel");
    }
  }
  ASSIGN_OR_RETURN(x, CastTo(d, x, DType::kF32));
  ASSIGN_OR_RETURN(x, d.Apply("Reshape", {x},
                              {{"shape", Dims{dims[0], dims[1], dims[2], groups, dims[3] / groups}},
                               {"allowzero", int64_t{1}}}));
  ASSIGN_OR_RETURN(x, Standardise(d, x, {1, 2, 4}, call.attrs().Float("epsilon", 1e-5F)));
  ASSIGN_OR_RETURN(x, d.Apply("Reshape", {x}, {{"shape", dims}, {"allowzero", int64_t{1}}}));
  for (int i = 1; i < 3; ++i) {
    ASSIGN_OR_RETURN(auto operand, CastTo(d, d.in(i), DType::kF32));
    ASSIGN_OR_RETURN(x, d.Apply(i == 1 ? "Mul" : "Add", {x, operand}));
  }
  if (activation == 1) {
    ASSIGN_OR_RETURN(auto gate, d.Apply("Sigmoid", {x}));
    ASSIGN_OR_RETURN(x, d.Apply("Mul", {x, gate}));
  }
  return CastTo(d, x, type.dtype);
}

absl::StatusOr<Decomposition::Value> RmsNormalised(Decomposition& d,
                                                   Decomposition::Value* inverse) {
  const OpCall& call = d.call();
  RETURN_IF_ERROR(CheckFloat(call, 0));
  RETURN_IF_ERROR(CheckFloat(call, 1));
  const int rank = call.shape(0).rank();
  ASSIGN_OR_RETURN(int axis, call.NormaliseAxis(call.attrs().Int("axis", -1), rank));
  Dims axes;
  for (int i = axis; i < rank; ++i) axes.push_back(i);
  const DType type = StatisticsType(call.dtype(0));
  ASSIGN_OR_RETURN(auto x, CastTo(d, d.in(0), type));
  ASSIGN_OR_RETURN(auto square, d.Apply("Mul", {x, x}));
  ASSIGN_OR_RETURN(auto mean, d.Apply("ReduceMean", {square}, {{"axes", axes}}));
  const double epsilon = call.attrs().Float("epsilon", 1e-5);
  ASSIGN_OR_RETURN(mean, d.Apply("Add", {mean, d.Scalar(type, epsilon)}));
  ASSIGN_OR_RETURN(auto root, d.Apply("Sqrt", {mean}));
  if (inverse != nullptr) {
    ASSIGN_OR_RETURN(*inverse, d.Apply("Reciprocal", {root}));
  }
  ASSIGN_OR_RETURN(auto y, d.Apply("Div", {x, root}));
  ASSIGN_OR_RETURN(y, CastTo(d, y, call.dtype(1)));
  ASSIGN_OR_RETURN(y, d.Apply("Mul", {y, d.in(1)}));
  if (d.type(y).shape != call.shape(0)) {
    return InvalidArgument("input 1 is ", call.in(1).ToString(),
                           ", expected a scale that broadcasts to input 0 ", call.in(0).ToString());
  }
  return y;
}

}  // namespace fusion
