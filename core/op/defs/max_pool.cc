#include "core/op/forms.h"
#include "core/op/forms/windows.h"

namespace fusion {

namespace {

// Row-major positions `at` in the input as positions that count its spatial dims, the first ones
// fastest, behind batch and channel.
absl::StatusOr<Decomposition::Value> InColumnMajor(Decomposition& d, Decomposition::Value at,
                                                   const std::vector<Window>& windows) {
  auto with = [&](std::string_view op, Decomposition::Value v, int64_t number) {
    return d.Apply(op, {v, d.Scalar(DType::kI64, static_cast<double>(number))});
  };
  int64_t whole = 1;
  for (const Window& w : windows) whole *= w.extent;
  ASSIGN_OR_RETURN(auto rest, with("Mod", at, whole));
  ASSIGN_OR_RETURN(auto position, d.Apply("Sub", {at, rest}));
  for (size_t i = windows.size(); i-- > 0;) {
    const int64_t extent = windows[i].extent;
    whole = extent == 0 ? 0 : whole / extent;  // elements of the dims before this one
    ASSIGN_OR_RETURN(auto coordinate, with("Mod", rest, extent));
    ASSIGN_OR_RETURN(rest, with("Div", rest, extent));
    ASSIGN_OR_RETURN(coordinate, with("Mul", coordinate, whole));
    ASSIGN_OR_RETURN(position, d.Apply("Add", {position, coordinate}));
  }
  return position;
}

// Output 1: where the maxima `max` of `x`, the padded input, are in the input.
absl::StatusOr<Decomposition::Value> IndicesOfMaxima(Decomposition& d, Decomposition::Value x,
                                                     Decomposition::Value max,
                                                     const std::vector<Window>& windows) {
  const AttrMap& given = d.call().attrs();
  const int64_t order = given.Int("storage_order", 0);
  if (order != 0 && order != 1) {
    return InvalidArgument("attribute \"storage_order\" is ", order, ", expected 0 or 1");
  }
  std::vector<int64_t> pads;
  std::vector<int64_t> extents;
  for (const Window& w : windows) {
    pads.push_back(w.pad_begin);
    extents.push_back(w.extent);
  }
  AttrMap attrs = StrideAttrs(windows);
  attrs.Set("kernel_shape", given.Ints("kernel_shape"));
  attrs.Set("pads", std::move(pads));
  attrs.Set("extents", std::move(extents));
  ASSIGN_OR_RETURN(auto at, d.Apply("WindowIndex", {x, max}, std::move(attrs)));
  return order == 0 ? at : InColumnMajor(d, at, windows);
}

}  // namespace

/// y = the largest element of each window; NaN if one is NaN. Output 1, i64: its position in the
/// whole input, of the first in row-major order if there are several; with storage_order = 1
/// positions count each channel in column-major order.
OpDef DefineMaxPool() {
  std::vector<ParamSpec> params = WindowParams();
  params.push_back({.name = "ceil_mode", .kind = ParamSpec::kInt});
  params.push_back({.name = "storage_order", .kind = ParamSpec::kInt});
  return {.name = "MaxPool",
          .params = std::move(params),
          .max_outputs = 2,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            auto max = Monoid::Named("max", call.dtype(0));
            if (!max) return InvalidArgument("input 0 is bool, expected a numeric type");
            ASSIGN_OR_RETURN(std::vector<Window> windows, PoolWindowsOf(call));
            ASSIGN_OR_RETURN(auto x, FillAround(d, d.in(0), windows, max->identity()[0]));
            AttrMap attrs = StrideAttrs(windows);
            attrs.Set("kernel_shape", call.attrs().Ints("kernel_shape"));
            attrs.Set("reduce", std::string("max"));
            ASSIGN_OR_RETURN(auto y, d.Apply("WindowReduce", {x}, std::move(attrs)));
            if (call.outputs() > 1) {
              ASSIGN_OR_RETURN(auto at, IndicesOfMaxima(d, x, y, windows));
              d.SetOutput(1, at);
            }
            return y;
          }};
}

}  // namespace fusion
