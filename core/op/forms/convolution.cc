#include "core/op/forms/convolution.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "core/op/forms.h"
#include "core/op/forms/windows.h"

namespace fusion {

namespace {

// The extents of the weight's windows; the channels must fit the input's.
absl::StatusOr<std::vector<int64_t>> KernelOf(const OpCall& call, int input, int64_t groups) {
  RETURN_IF_ERROR(call.CheckRankAtLeast(0, 3));
  const Shape& x = call.shape(0);
  const Shape& w = call.shape(input);
  if (w.rank() != x.rank()) {
    return InvalidArgument("input ", input, " ", call.in(input).ToString(), " has rank ", w.rank(),
                           ", expected the rank of input 0 ", call.in(0).ToString());
  }
  if (!w.is_static()) {
    return Unimplemented("input ", input, " ", call.in(input).ToString(), " has symbolic dims");
  }
  if (groups < 1 || w.dim(0).value() % groups != 0) {
    return InvalidArgument("attribute \"group\" is ", groups, ", the ", w.dim(0).value(),
                           " output channels of input ", input, " ", call.in(input).ToString(),
                           " do not divide by it");
  }
  if (groups > kMaxExtent / std::max<int64_t>(w.dim(1).value(), 1)) {
    return InvalidArgument("attribute \"group\" is ", groups, ", input ", input, " ",
                           call.in(input).ToString(), ": more than ", kMaxExtent,
                           " input channels");
  }
  Dim channels = w.dim(1) * groups;
  if (x.dim(1) != channels) {
    return InvalidArgument("input 0 ", call.in(0).ToString(), " has ", x.dim(1).ToString(),
                           " channels, input 1 ", call.in(input).ToString(), " in ", groups,
                           " group(s) expects ", channels.ToString());
  }
  Dims extents = w.ToDims();
  std::vector<int64_t> kernel(extents.begin() + 2, extents.end());
  if (call.attrs().Has("kernel_shape") && call.attrs().Ints("kernel_shape") != kernel) {
    return InvalidArgument(
        "attribute \"kernel_shape\" is [", StrJoin(call.attrs().Ints("kernel_shape"), ","),
        "], input 1 ", call.in(input).ToString(), " has the windows [", StrJoin(kernel, ","), "]");
  }
  return kernel;
}

// Windows of one point each, with other points between them.
bool KeepsPointsApart(const std::vector<Window>& windows) {
  return windows.size() > 1 &&
         std::all_of(windows.begin(), windows.end(),
                     [](const Window& w) { return w.kernel == 1; }) &&
         std::any_of(windows.begin(), windows.end(), [](const Window& w) { return w.stride > 1; });
}

// The points of `x` that such windows see, next to each other: then the spatial dims are one.
absl::StatusOr<Decomposition::Value> EveryStride(Decomposition& d, Decomposition::Value x,
                                                 std::vector<Window>* windows) {
  std::vector<int64_t> axes(windows->size());
  std::iota(axes.begin(), axes.end(), int64_t{2});
  std::vector<int64_t> steps;
  for (Window& w : *windows) steps.push_back(std::exchange(w.stride, 1));
  const std::vector<int64_t> ends(windows->size(), std::numeric_limits<int64_t>::max());
  return d.Apply("Slice", {x},
                 {{"starts", std::vector<int64_t>(windows->size(), 0)},
                  {"ends", ends},
                  {"axes", axes},
                  {"steps", steps}});
}

}  // namespace

std::vector<ParamSpec> ConvolutionParams() {
  std::vector<ParamSpec> params = WindowParams();
  params.push_back({.name = "group", .kind = ParamSpec::kInt});
  return params;
}

absl::StatusOr<Decomposition::Value> Convolved(Decomposition& d, Decomposition::Value x,
                                               Decomposition::Value w, int w_input) {
  const OpCall& call = d.call();
  const int64_t groups = call.attrs().Int("group", 1);
  ASSIGN_OR_RETURN(std::vector<int64_t> kernel, KernelOf(call, w_input, groups));
  ASSIGN_OR_RETURN(std::vector<Window> windows, WindowsOf(call, kernel));
  ASSIGN_OR_RETURN(x, FillAround(d, x, windows, Expr::Const(d.type(x).dtype, 0)));
  if (KeepsPointsApart(windows)) {
    ASSIGN_OR_RETURN(x, EveryStride(d, x, &windows));
  }
  AttrMap attrs = StrideAttrs(windows);
  attrs.Set("group", groups);
  return d.Apply("Convolve", {x, w}, std::move(attrs));
}

}  // namespace fusion
