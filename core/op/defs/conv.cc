#include <algorithm>

#include "core/op/forms.h"
#include "core/op/windows.h"

namespace fusion {

namespace {

// The extents of the weight's windows; the channels must fit the input's.
absl::StatusOr<std::vector<int64_t>> KernelOf(const OpCall& call, int64_t groups) {
  RETURN_IF_ERROR(call.CheckRankAtLeast(0, 3));
  RETURN_IF_ERROR(call.CheckSameType(0, 1));
  if (!IsFloat(call.dtype(0))) {
    return InvalidArgument("input 0 is ", DTypeName(call.dtype(0)), ", expected a float type");
  }
  const Shape& x = call.shape(0);
  const Shape& w = call.shape(1);
  if (w.rank() != x.rank()) {
    return InvalidArgument("input 1 ", call.in(1).ToString(), " has rank ", w.rank(),
                           ", expected the rank of input 0 ", call.in(0).ToString());
  }
  if (!w.is_static()) {
    return Unimplemented("input 1 ", call.in(1).ToString(), " has symbolic dims");
  }
  if (groups < 1 || w.dim(0).value() % groups != 0) {
    return InvalidArgument("attribute \"group\" is ", groups, ", the ", w.dim(0).value(),
                           " output channels of input 1 ", call.in(1).ToString(),
                           " do not divide by it");
  }
  if (groups > kMaxExtent / std::max<int64_t>(w.dim(1).value(), 1)) {
    return InvalidArgument("attribute \"group\" is ", groups, ", input 1 ", call.in(1).ToString(),
                           ": more than ", kMaxExtent, " input channels");
  }
  Dim channels = w.dim(1) * groups;
  if (x.dim(1) != channels) {
    return InvalidArgument("input 0 ", call.in(0).ToString(), " has ", x.dim(1).ToString(),
                           " channels, input 1 ", call.in(1).ToString(), " in ", groups,
                           " group(s) expects ", channels.ToString());
  }
  Dims extents = w.ToDims();
  std::vector<int64_t> kernel(extents.begin() + 2, extents.end());
  if (call.attrs().Has("kernel_shape") && call.attrs().Ints("kernel_shape") != kernel) {
    return InvalidArgument("attribute \"kernel_shape\" is [",
                           StrJoin(call.attrs().Ints("kernel_shape"), ","), "], input 1 ",
                           call.in(1).ToString(), " has the windows [", StrJoin(kernel, ","), "]");
  }
  return kernel;
}

}  // namespace

/// y = the sums of products of the weight and each window of the zero-padded input, plus a bias per
/// output channel
OpDef DefineConv() {
  std::vector<ParamSpec> params = WindowParams();
  params.push_back({.name = "group", .kind = ParamSpec::kInt});
  return {.name = "Conv",
          .min_inputs = 2,
          .max_inputs = 3,
          .params = std::move(params),
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            int64_t groups = call.attrs().Int("group", 1);
            ASSIGN_OR_RETURN(std::vector<int64_t> kernel, KernelOf(call, groups));
            ASSIGN_OR_RETURN(std::vector<Window> windows, WindowsOf(call, kernel));
            ASSIGN_OR_RETURN(auto x,
                             FillAround(d, d.in(0), windows, Expr::Const(call.dtype(0), 0)));
            AttrMap attrs = StrideAttrs(windows);
            attrs.Set("group", groups);
            ASSIGN_OR_RETURN(auto y, d.Apply("Convolve", {x, d.in(1)}, std::move(attrs)));
            if (!call.has_input(2)) return y;
            RETURN_IF_ERROR(call.CheckSameType(0, 2));
            if (call.shape(2) != Shape({call.shape(1).dim(0)})) {
              return InvalidArgument("input 2 ", call.in(2).ToString(),
                                     ", expected one value for"
                                     " each of ",
                                     call.shape(1).dim(0).ToString(), " output channels");
            }
            ASSIGN_OR_RETURN(auto bias, PerChannel(d, d.in(2), call.shape(0).rank()));
            return d.Apply("Add", {y, bias});
          }};
}

}  // namespace fusion
