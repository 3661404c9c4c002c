#include "core/op/indexed/scatter.h"

#include <algorithm>

#include "core/op/forms.h"

namespace fusion {

namespace {

absl::StatusOr<Decomposition::Value> ScatterElements(Decomposition& d) {
  const OpCall& call = d.call();
  RETURN_IF_ERROR(call.CheckSameType(0, 2));
  RETURN_IF_ERROR(call.CheckRankAtLeast(0, 1));
  const Shape& data = call.shape(0);
  const Shape& indices = call.shape(1);
  if (call.dtype(1) != DType::kI64 && call.dtype(1) != DType::kI32) {
    return InvalidArgument("input 1 is ", DTypeName(call.dtype(1)), ", expected i64 or i32");
  }
  ASSIGN_OR_RETURN(const int axis, call.NormaliseAxis(call.attrs().Int("axis", 0), data.rank()));
  if (!data.is_static() || !indices.is_static()) {
    return Unimplemented("inputs ", call.in(0).ToString(), " and ", call.in(1).ToString(),
                         ": a symbolic dim");
  }
  bool fits = indices == call.shape(2) && indices.rank() == data.rank();
  for (int i = 0; fits && i < data.rank(); ++i) {
    fits = i == axis || indices.dim(i).value() <= data.dim(i).value();
  }
  if (!fits) {
    return InvalidArgument("indices ", call.in(1).ToString(), " and updates ",
                           call.in(2).ToString(), " do not fit input 0 ", call.in(0).ToString(),
                           " beside axis ", axis);
  }
  ASSIGN_OR_RETURN(ScatterReduction reduction, ScatterReductionOf(call));
  const Dims named = indices.ToDims();
  if (std::find(named.begin(), named.end(), 0) != named.end()) {
    return d.Apply("Identity", {d.in(0)});
  }
  // Only the corner within the extents of `indices` changes. The rest is concatenated dim by dim.
  std::vector<Decomposition::Value> corners = {d.in(0)};
  for (int i = 0; i < data.rank(); ++i) {
    const int64_t extent = indices.dim(i).value();
    auto corner = corners.back();
    if (i != axis && extent < data.dim(i).value()) {
      ASSIGN_OR_RETURN(corner, SliceAlong(d, corner, i, 0, extent));
    }
    corners.push_back(corner);
  }
  ASSIGN_OR_RETURN(auto at, CastTo(d, d.in(1), DType::kI64));
  ASSIGN_OR_RETURN(auto y, ScatterAlong(d, corners.back(), at, d.in(2), axis, reduction));
  for (int i = data.rank(); i-- > 0;) {
    const auto whole = corners[static_cast<size_t>(i)];
    if (whole == corners[static_cast<size_t>(i) + 1]) continue;
    ASSIGN_OR_RETURN(auto rest,
                     SliceAlong(d, whole, i, indices.dim(i).value(), data.dim(i).value()));
    ASSIGN_OR_RETURN(y, d.Apply("Concat", {y, rest}, {{"axis", int64_t{i}}}));
  }
  return y;
}

}  // namespace

absl::StatusOr<ScatterReduction> ScatterReductionOf(const OpCall& call) {
  static constexpr ScatterReduction kReductions[] = {{"none", "", ""},
                                                     {"add", "Add", "sum"},
                                                     {"mul", "Mul", "prod"},
                                                     {"min", "Min", "min"},
                                                     {"max", "Max", "max"}};
  const auto* name = call.attrs().Find<std::string>("reduction");
  for (const ScatterReduction& r : kReductions) {
    if (r.name == (name != nullptr ? *name : "none")) return r;
  }
  return InvalidArgument("attribute \"reduction\" is ", QuoteShort(*name),
                         ", expected none, add, mul, min or max");
}

absl::StatusOr<Decomposition::Value> ScatterAlong(Decomposition& d, Decomposition::Value data,
                                                  Decomposition::Value indices,
                                                  Decomposition::Value updates, int axis,
                                                  const ScatterReduction& reduction) {
  AttrMap attrs = {{"axis", int64_t{axis}}, {"depth", d.type(data).shape.dim(axis).value()}};
  if (!reduction.op.empty()) {
    attrs.Set("reduction", std::string(reduction.monoid));
    ASSIGN_OR_RETURN(auto sum, d.Apply("ReduceIndexed", {indices, updates}, std::move(attrs)));
    return d.Apply(reduction.op, {data, sum});
  }
  const auto none = d.Scalar(DType::kI64, 0);
  ASSIGN_OR_RETURN(auto last, d.Apply("LastIndexed", {indices}, std::move(attrs)));
  ASSIGN_OR_RETURN(auto written, d.Apply("GreaterOrEqual", {last, none}));
  ASSIGN_OR_RETURN(last, d.Apply("Max", {last, none}));
  ASSIGN_OR_RETURN(auto found,
                   d.Apply("GatherElements", {updates, last}, {{"axis", int64_t{axis}}}));
  return d.Apply("Where", {written, found, data});
}

OpDef ScatterElementsOp(std::string name, int min_opset, int max_opset) {
  return {.name = std::move(name),
          .min_inputs = 3,
          .max_inputs = 3,
          .params = {{.name = "axis", .kind = ParamSpec::kInt},
                     {.name = "reduction", .kind = ParamSpec::kString}},
          .min_opset = min_opset,
          .max_opset = max_opset,
          .decompose = ScatterElements};
}

}  // namespace fusion
