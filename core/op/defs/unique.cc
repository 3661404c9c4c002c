#include "core/op/forms.h"
#include "core/op/selection.h"

namespace fusion {

namespace {

using Value = Decomposition::Value;

constexpr int64_t kMostThings = 16384;

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
  if (call.dtype(0) == DType::kBool) {
    ASSIGN_OR_RETURN(out.data, CastTo(d, out.data, DType::kI32));
  }
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

// bool: a comes before b in ascending order, NaN last.
absl::StatusOr<Value> ElementBefore(Decomposition& d, Value a, Value b) {
  ASSIGN_OR_RETURN(Value less, d.Apply("Less", {a, b}));
  if (!IsFloat(d.type(a).dtype)) return less;
  ASSIGN_OR_RETURN(Value a_nan, d.Apply("IsNaN", {a}));
  ASSIGN_OR_RETURN(Value b_nan, d.Apply("IsNaN", {b}));
  ASSIGN_OR_RETURN(Value number, d.Apply("Not", {a_nan}));
  ASSIGN_OR_RETURN(Value last, d.Apply("And", {number, b_nan}));
  return d.Apply("Or", {less, last});
}

// Tables of n by n bools: thing i (down) beside thing j (across).
struct Comparisons {
  Value same = 0;
  Value before = 0;  // j comes before i
};

// Rows are ordered by the first element that differs.
absl::StatusOr<Comparisons> CompareRows(Decomposition& d, const Things& things, Value i, Value j) {
  const AttrMap over = {{"axes", Dims{2}}, {"keepdims", int64_t{0}}};
  Comparisons out;
  ASSIGN_OR_RETURN(Value same, SameElement(d, i, j));
  ASSIGN_OR_RETURN(Value number, CastTo(d, same, DType::kI32));
  ASSIGN_OR_RETURN(Value all, d.Apply("ReduceMin", {number}, over));
  ASSIGN_OR_RETURN(out.same, CastTo(d, all, DType::kBool));
  ASSIGN_OR_RETURN(Value column, CountTo(d, things.m));
  HostTensor none(DType::kI64, {});
  none.SetInt(0, things.m);
  ASSIGN_OR_RETURN(Value differs, d.Apply("Where", {same, d.Constant(std::move(none)), column}));
  ASSIGN_OR_RETURN(Value first,
                   d.Apply("ReduceMin", {differs}, {{"axes", Dims{2}}, {"keepdims", int64_t{1}}}));
  ASSIGN_OR_RETURN(Value decides, d.Apply("Equal", {column, first}));
  ASSIGN_OR_RETURN(Value before, ElementBefore(d, j, i));
  ASSIGN_OR_RETURN(before, d.Apply("And", {before, decides}));
  ASSIGN_OR_RETURN(before, CastTo(d, before, DType::kI32));
  ASSIGN_OR_RETURN(before, d.Apply("ReduceMax", {before}, over));
  ASSIGN_OR_RETURN(out.before, CastTo(d, before, DType::kBool));
  return out;
}

absl::StatusOr<Comparisons> Compare(Decomposition& d, const Things& things) {
  ASSIGN_OR_RETURN(Value i, d.Apply("Unsqueeze", {things.data}, {{"axes", Dims{1}}}));
  ASSIGN_OR_RETURN(Value j, d.Apply("Unsqueeze", {things.data}, {{"axes", Dims{0}}}));
  if (things.rows) return CompareRows(d, things, i, j);
  Comparisons out;
  ASSIGN_OR_RETURN(out.same, SameElement(d, i, j));
  ASSIGN_OR_RETURN(out.before, ElementBefore(d, j, i));
  return out;
}

// For each i how many j there are with table[i, j].
absl::StatusOr<Value> CountAcross(Decomposition& d, Value table, int64_t axis) {
  ASSIGN_OR_RETURN(Value ones, CastTo(d, table, DType::kI64));
  return d.Apply("ReduceSum", {ones}, {{"axes", Dims{axis}}, {"keepdims", int64_t{0}}});
}

struct Distinct {
  Value first = 0;   // for each thing the first that is the same
  Value chosen = 0;  // bool: it is that itself
  Value rank = 0;    // of those: where they stand among the distinct ones
};

absl::StatusOr<Distinct> FindDistinct(Decomposition& d, const Things& things) {
  Distinct out;
  ASSIGN_OR_RETURN(Comparisons tables, Compare(d, things));
  ASSIGN_OR_RETURN(Value place, CountTo(d, things.n));
  HostTensor nowhere(DType::kI64, {});
  nowhere.SetInt(0, things.n);
  ASSIGN_OR_RETURN(Value same_at,
                   d.Apply("Where", {tables.same, place, d.Constant(std::move(nowhere))}));
  ASSIGN_OR_RETURN(out.first,
                   d.Apply("ReduceMin", {same_at}, {{"axes", Dims{1}}, {"keepdims", int64_t{0}}}));
  ASSIGN_OR_RETURN(out.chosen, d.Apply("Equal", {out.first, place}));
  if (d.call().attrs().Int("sorted", 1) != 0) {
    ASSIGN_OR_RETURN(Value counts, d.Apply("And", {tables.before, out.chosen}));
    ASSIGN_OR_RETURN(out.rank, CountAcross(d, counts, 1));
    return out;
  }
  ASSIGN_OR_RETURN(Value ones, CastTo(d, out.chosen, DType::kI64));
  ASSIGN_OR_RETURN(out.rank,
                   d.Apply("CumSum", {ones}, {{"axis", Dims{0}}, {"exclusive", int64_t{1}}}));
  return out;
}

absl::StatusOr<Value> DecomposeUnique(Decomposition& d) {
  ASSIGN_OR_RETURN(Things things, ThingsOf(d));
  if (things.n > kMostThings) {
    return Unimplemented("input 0 is ", d.call().in(0).ToString(), ": ", things.n,
                         " parts, each compared with all; at most ", kMostThings, " are supported");
  }
  const bool rows = things.rows;
  const int64_t axis = rows ? AxisOf(d.call()).value() : 0;
  Value data = d.in(0);
  if (!rows) {
    ASSIGN_OR_RETURN(data, Flattened(d, data));
  }
  if (things.n == 0) {
    const Value none = d.Constant(HostTensor(DType::kI64, {0}));
    for (int i = 1; i < 4; ++i) d.SetOutput(i, none);
    d.SetOutput(4, d.Scalar(DType::kI64, 0));
    return d.Apply("Identity", {data});
  }
  ASSIGN_OR_RETURN(Distinct distinct, FindDistinct(d, things));
  ASSIGN_OR_RETURN(Selection found, ChosenByRank(d, distinct.chosen, distinct.rank));
  ASSIGN_OR_RETURN(Value inverse, d.Apply("Gather", {distinct.rank, distinct.first}));
  ASSIGN_OR_RETURN(Value k, CountTo(d, things.n));
  ASSIGN_OR_RETURN(Value down, d.Apply("Unsqueeze", {inverse}, {{"axes", Dims{1}}}));
  ASSIGN_OR_RETURN(Value is_k, d.Apply("Equal", {down, k}));
  ASSIGN_OR_RETURN(Value counts, CountAcross(d, is_k, 0));
  d.SetOutput(1, found.places);
  d.SetOutput(2, inverse);
  d.SetOutput(3, counts);
  d.SetOutput(4, found.count);
  return d.Apply("Gather", {data, found.places}, {{"axis", axis}});
}

}  // namespace

/// The distinct parts of x along `axis` (absent: of its elements), in ascending order or, with
/// `sorted` 0, as they come; where each is first, which of them each part of x is, and how often
/// each is there. NaN is one value, behind all others. A run decides how many there are.
/// n * n comparisons.
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
