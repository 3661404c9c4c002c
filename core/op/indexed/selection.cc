#include "core/op/indexed/selection.h"

#include <algorithm>

#include "core/op/forms.h"
#include "core/op/indexed/opaque.h"

namespace fusion {
namespace {

using Value = Decomposition::Value;

Value Integer(Decomposition& d, int64_t value) {
  HostTensor constant(DType::kI64, {});
  constant.SetInt(0, value);
  return d.Constant(std::move(constant));
}

int64_t Elements(const Decomposition& d, Value list) { return d.type(list).shape.dim(0).value(); }

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
  ASSIGN_OR_RETURN(out.places, d.Apply(ChosenPlaces::kName, {chosen}));
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
