#include "core/op/selection.h"

#include <algorithm>

#include "core/op/forms.h"

namespace fusion {
namespace {

using Value = Decomposition::Value;

Value Integer(Decomposition& d, int64_t value) {
  HostTensor constant(DType::kI64, {});
  constant.SetInt(0, value);
  return d.Constant(std::move(constant));
}

int64_t Elements(const Decomposition& d, Value list) { return d.type(list).shape.dim(0).value(); }

// 0, 1, .. up to the last that there is, then that one again.
absl::StatusOr<Value> CountToLast(Decomposition& d, int64_t n, Value count) {
  ASSIGN_OR_RETURN(Value k, CountTo(d, n));
  ASSIGN_OR_RETURN(Value last, d.Apply("Sub", {count, Integer(d, 1)}));
  ASSIGN_OR_RETURN(k, d.Apply("Min", {k, last}));
  return d.Apply("Max", {k, Integer(d, 0)});
}

// How many elements of `ascending` are at most key[k], for each k.
absl::StatusOr<Value> HowManyUpTo(Decomposition& d, Value ascending, Value key) {
  const int64_t n = Elements(d, ascending);
  ASSIGN_OR_RETURN(Value found, d.Apply("Mul", {key, Integer(d, 0)}));
  int64_t step = 1;
  while (step * 2 <= n) step *= 2;
  for (; step > 0; step /= 2) {
    ASSIGN_OR_RETURN(Value next, d.Apply("Add", {found, Integer(d, step)}));
    ASSIGN_OR_RETURN(Value last, d.Apply("Add", {found, Integer(d, step - 1)}));
    ASSIGN_OR_RETURN(last, d.Apply("Min", {last, Integer(d, n - 1)}));
    ASSIGN_OR_RETURN(Value there, d.Apply("Gather", {ascending, last}, {{"axis", int64_t{0}}}));
    ASSIGN_OR_RETURN(Value up_to, d.Apply("LessOrEqual", {there, key}));
    ASSIGN_OR_RETURN(Value inside, d.Apply("LessOrEqual", {next, Integer(d, n)}));
    ASSIGN_OR_RETURN(Value moves, d.Apply("And", {up_to, inside}));
    ASSIGN_OR_RETURN(found, d.Apply("Where", {moves, next, found}));
  }
  return found;
}

absl::StatusOr<Value> SumOf(Decomposition& d, Value list) {
  return d.Apply("ReduceSum", {list}, {{"axes", Dims{0}}, {"keepdims", int64_t{0}}});
}

}  // namespace

absl::StatusOr<Value> Flattened(Decomposition& d, Value x) {
  return d.Apply("Reshape", {x}, {{"shape", Dims{-1}}});
}

absl::StatusOr<Selection> ChosenElements(Decomposition& d, Value chosen) {
  const int64_t n = Elements(d, chosen);
  Selection out;
  ASSIGN_OR_RETURN(Value ones, CastTo(d, chosen, DType::kI64));
  ASSIGN_OR_RETURN(out.count, SumOf(d, ones));
  out.places = ones;
  if (n == 0) return out;
  ASSIGN_OR_RETURN(Value upto, d.Apply("CumSum", {ones}, {{"axis", Dims{0}}}));
  ASSIGN_OR_RETURN(Value key, CountToLast(d, n, out.count));
  ASSIGN_OR_RETURN(out.places, HowManyUpTo(d, upto, key));
  ASSIGN_OR_RETURN(out.places, d.Apply("Min", {out.places, Integer(d, n - 1)}));
  return out;
}

absl::StatusOr<Selection> ChosenByRank(Decomposition& d, Value chosen, Value rank) {
  const int64_t n = Elements(d, rank);
  Selection out;
  ASSIGN_OR_RETURN(Value ones, CastTo(d, chosen, DType::kI64));
  ASSIGN_OR_RETURN(out.count, SumOf(d, ones));
  ASSIGN_OR_RETURN(Value key, CountToLast(d, n, out.count));
  ASSIGN_OR_RETURN(Value down, d.Apply("Unsqueeze", {key}, {{"axes", Dims{1}}}));
  ASSIGN_OR_RETURN(Value is_key, d.Apply("Equal", {rank, down}));
  ASSIGN_OR_RETURN(Value hit, d.Apply("And", {is_key, chosen}));
  ASSIGN_OR_RETURN(Value place, CountTo(d, n));
  ASSIGN_OR_RETURN(place, d.Apply("Where", {hit, place, Integer(d, 0)}));
  ASSIGN_OR_RETURN(out.places,
                   d.Apply("ReduceSum", {place}, {{"axes", Dims{1}}, {"keepdims", int64_t{0}}}));
  return out;
}

absl::StatusOr<Value> CoordinatesOf(Decomposition& d, Value places, const Dims& dims,
                                    int64_t axis) {
  std::vector<Value> columns;
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    const int64_t extent = std::max<int64_t>(dims[i], 1);
    ASSIGN_OR_RETURN(Value at, d.Apply("Div", {places, Integer(d, stride)}));
    ASSIGN_OR_RETURN(at, d.Apply("Mod", {at, Integer(d, extent)}));
    ASSIGN_OR_RETURN(at, d.Apply("Unsqueeze", {at}, {{"axes", Dims{axis}}}));
    columns.insert(columns.begin(), at);
    stride *= extent;
  }
  return d.Apply("Concat", std::move(columns), {{"axis", axis}});
}

}  // namespace fusion
