#include "core/op/forms.h"
#include "core/op/indexed/opaque.h"
#include "core/op/indexed/selection.h"

namespace fusion {

namespace {

using Value = Decomposition::Value;

// The things that are compared: elements of a list, or the parts along an axis, each a row of a
// matrix.
struct Things {
  Value data = 0;  // [n], or [n, m]
  bool rows = false;
  int64_t n = 0;
  int64_t m = 1;
};

absl::StatusOr<int> AxisOf(const OpCall& call) {
  return call.NormaliseAxis(call.attrs().Int("axis", 0), call.shape(0).rank());
}

absl::StatusOr<Things> ThingsOf(Decomposition& d) {
  const OpCall& call = d.call();
  ASSIGN_OR_RETURN(Dims dims, StaticDims(call, 0));
  Things out{.data = d.in(0)};
  DType wide = DType::kI32;
  if (call.dtype(0) != DType::kBool) {
    ASSIGN_OR_RETURN(wide, WideType(call, 0));
  }
  ASSIGN_OR_RETURN(out.data, CastTo(d, out.data, wide));
  if (!call.attrs().Has("axis")) {
    ASSIGN_OR_RETURN(out.data, Flattened(d, out.data));
    out.n = d.type(out.data).shape.dim(0).value();
    return out;
  }
  ASSIGN_OR_RETURN(int axis, AxisOf(call));
  Dims perm = {axis};
  for (int i = 0; i < static_cast<int>(dims.size()); ++i) {
    if (i != axis) perm.push_back(i);
    if (i != axis) out.m *= dims[static_cast<size_t>(i)];
  }
  out.rows = true;
  out.n = dims[static_cast<size_t>(axis)];
  if (out.m == 0) {
    return Unimplemented("input 0 is ", call.in(0).ToString(), ": parts along axis ", axis,
                         " that have no element");
  }
  ASSIGN_OR_RETURN(out.data, d.Apply("Transpose", {out.data}, {{"perm", perm}}));
  ASSIGN_OR_RETURN(out.data, d.Apply("Reshape", {out.data},
                                     {{"shape", Dims{out.n, out.m}}, {"allowzero", int64_t{1}}}));
  return out;
}

// bool: both are the same number, or both are NaN.
absl::StatusOr<Value> SameElement(Decomposition& d, Value a, Value b) {
  ASSIGN_OR_RETURN(Value equal, d.Apply("Equal", {a, b}));
  if (!IsFloat(d.type(a).dtype)) return equal;
  ASSIGN_OR_RETURN(Value a_nan, d.Apply("IsNaN", {a}));
  ASSIGN_OR_RETURN(Value b_nan, d.Apply("IsNaN", {b}));
  ASSIGN_OR_RETURN(Value both, d.Apply("And", {a_nan, b_nan}));
  return d.Apply("Or", {equal, both});
}

absl::StatusOr<Value> AtPlaces(Decomposition& d, Value list, Value places) {
  return d.Apply("Gather", {list, places}, {{"axis", int64_t{0}}});
}

// A running maximum or minimum of a list, from the front or from the end.
absl::StatusOr<Value> Running(Decomposition& d, Value list, const std::string& monoid,
                              bool reverse) {
  return d.Apply(RunningFold::kName, {list},
                 {{"axis", int64_t{0}}, {"monoid", monoid}, {"reverse", int64_t{reverse}}});
}

// How things stand once they are in order: those that are the same are neighbours, the one that
// comes first in the input in front.
struct InOrder {
  Value order = 0;   // i64[n]: where the k-th is in the input
  Value place = 0;   // i64[n]: where a thing of the input stands
  Value starts = 0;  // bool[n]: the k-th is the first of its kind
  Value start = 0;   // i64[n]: where that is
  Value size = 0;    // i64[n]: how many of its kind there are
};

absl::StatusOr<InOrder> PutInOrder(Decomposition& d, const Things& things) {
  auto order_of = [&](Value x, bool rows) {
    return d.Apply(RowOrder::kName, {x},
                   {{"axis", int64_t{0}},
                    {"count", things.n},
                    {"largest", int64_t{0}},
                    {"things", int64_t{rows}}});
  };
  InOrder out;
  ASSIGN_OR_RETURN(out.order, order_of(things.data, things.rows));
  ASSIGN_OR_RETURN(out.place, order_of(out.order, false));
  ASSIGN_OR_RETURN(Value sorted, AtPlaces(d, things.data, out.order));
  ASSIGN_OR_RETURN(Value before, SliceAlong(d, sorted, 0, 0, things.n - 1));
  ASSIGN_OR_RETURN(Value behind, SliceAlong(d, sorted, 0, 1, things.n));
  ASSIGN_OR_RETURN(Value same, SameElement(d, before, behind));
  if (things.rows) {
    ASSIGN_OR_RETURN(same, CastTo(d, same, DType::kI32));
    ASSIGN_OR_RETURN(same,
                     d.Apply("ReduceMin", {same}, {{"axes", Dims{1}}, {"keepdims", int64_t{0}}}));
    ASSIGN_OR_RETURN(same, CastTo(d, same, DType::kBool));
  }
  ASSIGN_OR_RETURN(Value differs, d.Apply("Not", {same}));
  HostTensor first(DType::kBool, {1});
  first.SetInt(0, 1);
  ASSIGN_OR_RETURN(out.starts, d.Apply("Concat", {d.Constant(std::move(first)), differs},
                                       {{"axis", int64_t{0}}}));
  ASSIGN_OR_RETURN(Value at, CountTo(d, things.n));
  ASSIGN_OR_RETURN(out.start, d.Apply("Where", {out.starts, at, d.Scalar(DType::kI64, 0)}));
  ASSIGN_OR_RETURN(out.start, Running(d, out.start, "max", /*reverse=*/false));
  // Where the next kind begins: the least start behind.
  HostTensor end(DType::kI64, {1});
  end.SetInt(0, things.n);
  const Value n = d.Constant(std::move(end));
  ASSIGN_OR_RETURN(Value next, d.Apply("Where", {out.starts, at, n}));
  ASSIGN_OR_RETURN(next, SliceAlong(d, next, 0, 1, things.n));
  ASSIGN_OR_RETURN(next, d.Apply("Concat", {next, n}, {{"axis", int64_t{0}}}));
  ASSIGN_OR_RETURN(next, Running(d, next, "min", /*reverse=*/true));
  ASSIGN_OR_RETURN(out.size, d.Apply("Sub", {next, out.start}));
  return out;
}

// Numbers of the things for which `chosen`, bool[n], is true, counted from 0 on.
absl::StatusOr<Value> NumberedFrom0(Decomposition& d, Value chosen) {
  ASSIGN_OR_RETURN(Value ones, CastTo(d, chosen, DType::kI64));
  ASSIGN_OR_RETURN(Value upto, d.Apply("CumSum", {ones}, {{"axis", Dims{0}}}));
  return d.Apply("Sub", {upto, d.Scalar(DType::kI64, 1)});
}

struct Distinct {
  Value first = 0;    // where each is first in the input
  Value inverse = 0;  // which of them each thing of the input is
  Value counts = 0;
  Value count = 0;
};

absl::StatusOr<Distinct> FindDistinct(Decomposition& d, const Things& things) {
  ASSIGN_OR_RETURN(InOrder in, PutInOrder(d, things));
  Distinct out;
  if (d.call().attrs().Int("sorted", 1) != 0) {
    ASSIGN_OR_RETURN(Selection found, ChosenElements(d, in.starts));
    ASSIGN_OR_RETURN(Value number, NumberedFrom0(d, in.starts));
    ASSIGN_OR_RETURN(out.first, AtPlaces(d, in.order, found.places));
    ASSIGN_OR_RETURN(out.inverse, AtPlaces(d, number, in.place));
    ASSIGN_OR_RETURN(out.counts, AtPlaces(d, in.size, found.places));
    out.count = found.count;
    return out;
  }
  // As they come: by where each is first.
  ASSIGN_OR_RETURN(Value chosen, AtPlaces(d, in.starts, in.place));
  ASSIGN_OR_RETURN(Selection found, ChosenElements(d, chosen));
  ASSIGN_OR_RETURN(Value number, NumberedFrom0(d, chosen));
  ASSIGN_OR_RETURN(Value first, AtPlaces(d, in.order, in.start));
  ASSIGN_OR_RETURN(first, AtPlaces(d, first, in.place));
  ASSIGN_OR_RETURN(Value sizes, AtPlaces(d, in.size, in.place));
  out.first = found.places;
  ASSIGN_OR_RETURN(out.inverse, AtPlaces(d, number, first));
  ASSIGN_OR_RETURN(out.counts, AtPlaces(d, sizes, found.places));
  out.count = found.count;
  return out;
}

absl::StatusOr<Value> DecomposeUnique(Decomposition& d) {
  ASSIGN_OR_RETURN(Things things, ThingsOf(d));
  const int64_t axis = things.rows ? AxisOf(d.call()).value() : 0;
  Value data = d.in(0);
  if (!things.rows) {
    ASSIGN_OR_RETURN(data, Flattened(d, data));
  }
  if (things.n == 0) {
    const Value none = d.Constant(HostTensor(DType::kI64, {0}));
    for (int i = 1; i < 4; ++i) d.SetOutput(i, none);
    d.SetOutput(4, d.Scalar(DType::kI64, 0));
    return d.Apply("Identity", {data});
  }
  ASSIGN_OR_RETURN(Distinct distinct, FindDistinct(d, things));
  d.SetOutput(1, distinct.first);
  d.SetOutput(2, distinct.inverse);
  d.SetOutput(3, distinct.counts);
  d.SetOutput(4, distinct.count);
  return d.Apply("Gather", {data, distinct.first}, {{"axis", axis}});
}

}  // namespace

/// The distinct parts of x along `axis` (absent: of its elements), in ascending order or, with
/// `sorted` 0, as they come; where each is first, which of them each part of x is, and how often
/// each is there. NaN is one value, behind all others. A run decides how many there are.
OpDef DefineUnique() {
  return {
      .name = "Unique",
      .params = {{.name = "axis", .kind = ParamSpec::kInt},
                 {.name = "sorted", .kind = ParamSpec::kInt}},
      .min_opset = 11,
      .max_outputs = 5,
      .counted =
          [](const OpCall& call) {
            const bool rows = call.attrs().Has("axis");
            const auto axis = AxisOf(call);
            return std::vector<OpDef::Counted>{{0, rows && axis.ok() ? *axis : 0}, {1, 0}, {3, 0}};
          },
      .decompose = DecomposeUnique};
}

}  // namespace fusion
