#include <algorithm>

#include "core/op/forms.h"
#include "core/op/windows.h"

namespace fusion {

namespace {

// How many elements of window `i` are averaged: those inside the input, or inside the padding that
// was asked for. What a ceil_mode window covers beyond that never counts.
int64_t AveragedElements(const Window& w, int64_t i, bool with_padding) {
  int64_t low = with_padding ? 0 : w.pad_begin;
  int64_t high = w.pad_begin + w.extent + (with_padding ? w.pad_end : 0);
  int64_t inside = 0;
  for (int64_t k = 0; k < w.kernel; ++k) {
    int64_t at = i * w.stride + k * w.dilation;
    inside += at >= low && at < high ? 1 : 0;
  }
  return inside;
}

// Of every window, as a tensor that broadcasts to the output: an extent of 1 where all windows of a
// dim count the same.
absl::StatusOr<HostTensor> Counts(const std::vector<Window>& windows, bool with_padding,
                                  DType type) {
  std::vector<std::vector<int64_t>> per_dim;
  Dims extents;
  for (const Window& w : windows) {
    std::vector<int64_t> counts;
    for (int64_t i = 0; i < w.count; ++i) counts.push_back(AveragedElements(w, i, with_padding));
    bool equal =
        std::adjacent_find(counts.begin(), counts.end(), std::not_equal_to<>()) == counts.end();
    if (equal) counts.resize(std::min<size_t>(counts.size(), 1));
    extents.push_back(static_cast<int64_t>(counts.size()));
    per_dim.push_back(std::move(counts));
  }
  ASSIGN_OR_RETURN(HostTensor out, HostTensor::Create(type, extents));
  for (int64_t flat = 0; flat < out.elements(); ++flat) {
    int64_t rest = flat;
    int64_t product = 1;
    for (size_t d = extents.size(); d-- > 0;) {
      product *= per_dim[d][static_cast<size_t>(rest % extents[d])];
      rest /= extents[d];
    }
    out.SetDouble(flat, static_cast<double>(product));
  }
  return out;
}

}  // namespace

/// y = the mean of each window: of its elements inside the input or, with count_include_pad, inside
/// the padding as well
OpDef DefineAveragePool() {
  std::vector<ParamSpec> params = WindowParams();
  params.push_back({.name = "ceil_mode", .kind = ParamSpec::kInt});
  params.push_back({.name = "count_include_pad", .kind = ParamSpec::kInt});
  return {.name = "AveragePool",
          .params = std::move(params),
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            if (!IsFloat(call.dtype(0))) {
              return InvalidArgument("input 0 is ", DTypeName(call.dtype(0)),
                                     ", expected a float type");
            }
            ASSIGN_OR_RETURN(std::vector<Window> windows, PoolWindowsOf(call));
            ASSIGN_OR_RETURN(auto x,
                             FillAround(d, d.in(0), windows, Expr::Const(call.dtype(0), 0)));
            AttrMap attrs = StrideAttrs(windows);
            attrs.Set("kernel_shape", call.attrs().Ints("kernel_shape"));
            attrs.Set("reduce", std::string("sum"));
            ASSIGN_OR_RETURN(auto sum, d.Apply("WindowReduce", {x}, std::move(attrs)));
            bool with_padding = call.attrs().Int("count_include_pad", 0) != 0;
            ASSIGN_OR_RETURN(HostTensor counts, Counts(windows, with_padding, call.dtype(0)));
            return d.Apply("Div", {sum, d.Constant(std::move(counts))});
          }};
}

}  // namespace fusion
