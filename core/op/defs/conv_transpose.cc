#include <algorithm>

#include "core/op/forms.h"
#include "core/op/forms/windows.h"

namespace fusion {

namespace {

// Batch or output channels first, channels second, spatial dims behind.
constexpr size_t kFront = 2;

// Elements of each output phase's kernel: output elements with the same remainder by the stride
// meet the same elements of the kernel.
int64_t PhaseTaps(const SpreadWindow& w) {
  const int64_t span = (w.kernel - 1) * w.dilation + 1;
  return (span + w.stride - 1) / w.stride;
}

// w [in channels, out channels of a group, k..] with zeros between the elements of a dilated
// kernel and behind, so that each spatial dim holds stride * taps elements.
absl::StatusOr<Decomposition::Value> WholePhases(Decomposition& d, Decomposition::Value w,
                                                 const std::vector<SpreadWindow>& windows) {
  Dims dims = d.type(w).shape.ToDims();
  for (size_t i = 0; i < windows.size(); ++i) {
    if (windows[i].dilation == 1) continue;
    const size_t at = kFront + i;
    const auto behind = static_cast<int64_t>(at) + 1;
    ASSIGN_OR_RETURN(w, d.Apply("Unsqueeze", {w}, {{"axes", Dims{behind}}}));
    Dims pads(2 * (dims.size() + 1), 0);
    pads[dims.size() + 1 + at + 1] = windows[i].dilation - 1;
    ASSIGN_OR_RETURN(w, d.Apply("Pad", {w}, {{"pads", pads}}));
    dims[at] *= windows[i].dilation;
    ASSIGN_OR_RETURN(w, d.Apply("Reshape", {w}, {{"shape", dims}}));
  }
  Dims pads(2 * dims.size(), 0);
  for (size_t i = 0; i < windows.size(); ++i) {
    pads[dims.size() + kFront + i] = PhaseTaps(windows[i]) * windows[i].stride - dims[kFront + i];
  }
  if (std::all_of(pads.begin(), pads.end(), [](int64_t p) { return p == 0; })) return w;
  return d.Apply("Pad", {w}, {{"pads", pads}});
}

// The kernels of all phases as output channels of one convolution, [group, phase.., out channel]
// by input channels of a group by taps, last tap first.
absl::StatusOr<Decomposition::Value> PhaseKernels(Decomposition& d, Decomposition::Value w,
                                                  const std::vector<SpreadWindow>& windows,
                                                  int64_t groups) {
  const Dims dims = d.type(w).shape.ToDims();
  ASSIGN_OR_RETURN(w, WholePhases(d, w, windows));
  Dims split = {groups, dims[0] / groups, dims[1]};
  Dims phases;
  Dims taps;
  Dims merged = {groups * dims[1], dims[0] / groups};
  Dims ends;
  for (const SpreadWindow& window : windows) {
    const auto at = static_cast<int64_t>(split.size());
    taps.push_back(at);
    phases.push_back(at + 1);
    split.push_back(PhaseTaps(window));
    split.push_back(window.stride);
    merged[0] *= window.stride;
    merged.push_back(PhaseTaps(window));
    ends.push_back(-PhaseTaps(window) - 1);
  }
  ASSIGN_OR_RETURN(w, d.Apply("Reshape", {w}, {{"shape", split}}));
  ASSIGN_OR_RETURN(w, d.Apply("Slice", {w},
                              {{"starts", Dims(taps.size(), -1)},
                               {"ends", ends},
                               {"axes", taps},
                               {"steps", Dims(taps.size(), -1)}}));
  Dims perm = {0};
  perm.insert(perm.end(), phases.begin(), phases.end());
  perm.insert(perm.end(), {2, 1});
  perm.insert(perm.end(), taps.begin(), taps.end());
  ASSIGN_OR_RETURN(w, d.Apply("Transpose", {w}, {{"perm", perm}}));
  return d.Apply("Reshape", {w}, {{"shape", merged}});
}

// y [n, group * phase.. * channels, q..] with the phases woven into the spatial dims.
absl::StatusOr<Decomposition::Value> Woven(Decomposition& d, Decomposition::Value y,
                                           const std::vector<SpreadWindow>& windows, int64_t groups,
                                           int64_t channels) {
  const Shape& shape = d.type(y).shape;
  const auto dims = static_cast<int64_t>(windows.size());
  Dims split = {0, groups};  // 0: as it is
  Dims perm = {0, 1, 2 + dims};
  Dims woven = {0, groups * channels};
  for (const SpreadWindow& window : windows) split.push_back(window.stride);
  split.push_back(channels);
  for (int64_t i = 0; i < dims; ++i) {
    const int64_t taps = shape.dim(static_cast<int>(i) + 2).value();
    split.push_back(taps);
    perm.insert(perm.end(), {3 + dims + i, 2 + i});
    woven.push_back(taps * windows[static_cast<size_t>(i)].stride);
  }
  ASSIGN_OR_RETURN(y, d.Apply("Reshape", {y}, {{"shape", split}}));
  ASSIGN_OR_RETURN(y, d.Apply("Transpose", {y}, {{"perm", perm}}));
  return d.Apply("Reshape", {y}, {{"shape", woven}});
}

// What all windows write, by one convolution for all phases: output element q * stride + r is the
// sum over taps u of x[q - u] * w[u * stride + r].
absl::StatusOr<Decomposition::Value> SpreadOut(Decomposition& d, Decomposition::Value w,
                                               const std::vector<SpreadWindow>& windows,
                                               int64_t groups) {
  const int64_t channels = d.type(w).shape.dim(1).value();
  ASSIGN_OR_RETURN(w, PhaseKernels(d, w, windows, groups));
  Dims around(2, 0);
  for (int side = 0; side < 2; ++side) {
    if (side == 1) around.insert(around.end(), 2, 0);
    for (const SpreadWindow& window : windows) around.push_back(PhaseTaps(window) - 1);
  }
  Decomposition::Value x = d.in(0);
  if (std::any_of(around.begin(), around.end(), [](int64_t p) { return p != 0; })) {
    ASSIGN_OR_RETURN(x, d.Apply("Pad", {x}, {{"pads", around}}));
  }
  ASSIGN_OR_RETURN(auto y, d.Apply("Convolve", {x, w}, {{"group", groups}}));
  ASSIGN_OR_RETURN(y, Woven(d, y, windows, groups, channels));
  Dims cut(2, 0);
  for (const SpreadWindow& window : windows) cut.push_back(-window.cut_begin);
  cut.insert(cut.end(), 2, 0);
  for (const SpreadWindow& window : windows) {
    const int64_t all = (window.extent + PhaseTaps(window) - 1) * window.stride;
    cut.push_back(window.count + window.cut_begin - all);
  }
  if (std::all_of(cut.begin(), cut.end(), [](int64_t p) { return p == 0; })) return y;
  return d.Apply("Pad", {y}, {{"pads", cut}});
}

// The output channels of all phases are dims of a tensor.
absl::Status CheckPhases(const std::vector<SpreadWindow>& windows, int64_t channels) {
  for (const SpreadWindow& w : windows) {
    if (w.stride > kMaxExtent / channels) {
      return Unimplemented("attribute \"strides\" has the entry ", w.stride, " for ", channels,
                           " output channels and those before it; supported: ", kMaxExtent,
                           " together");
    }
    channels *= w.stride;
  }
  return absl::OkStatus();
}

absl::StatusOr<Dims> KernelOf(const OpCall& call, int64_t groups) {
  RETURN_IF_ERROR(call.CheckRankAtLeast(0, 3));
  RETURN_IF_ERROR(call.CheckSameType(0, 1));
  const Shape& x = call.shape(0);
  const Shape& w = call.shape(1);
  if (!IsFloat(call.dtype(0))) {
    return InvalidArgument("input 0 is ", DTypeName(call.dtype(0)), ", expected a float type");
  }
  if (w.rank() != x.rank() || !w.is_static() || x.dim(1) != w.dim(0)) {
    return InvalidArgument("input 1 ", call.in(1).ToString(),
                           ", expected [input channels, output channels of a group, kernel..] for "
                           "input 0 ",
                           call.in(0).ToString());
  }
  const Dims dims = w.ToDims();
  if (groups < 1 || dims[0] % groups != 0 || NumElements(dims) == 0 ||
      groups > kMaxExtent / dims[1]) {
    return InvalidArgument("attribute \"group\" is ", groups, " for input 1 ",
                           call.in(1).ToString());
  }
  Dims kernel(dims.begin() + kFront, dims.end());
  if (call.attrs().Has("kernel_shape") && call.attrs().Ints("kernel_shape") != kernel) {
    return InvalidArgument("attribute \"kernel_shape\" is [",
                           StrJoin(call.attrs().Ints("kernel_shape"), ","), "], input 1 ",
                           call.in(1).ToString(), " has the windows [", StrJoin(kernel, ","), "]");
  }
  return kernel;
}

}  // namespace

/// y = each element of the input times the weight, added up where the windows of the output
/// overlap, plus a bias per output channel: the adjoint of Conv
OpDef DefineConvTranspose() {
  std::vector<ParamSpec> params = WindowParams();
  params.push_back({.name = "group", .kind = ParamSpec::kInt});
  params.push_back({.name = "output_padding", .kind = ParamSpec::kInts});
  params.push_back({.name = "output_shape", .kind = ParamSpec::kInts});
  return {.name = "ConvTranspose",
          .min_inputs = 2,
          .max_inputs = 3,
          .params = std::move(params),
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            const int64_t groups = call.attrs().Int("group", 1);
            ASSIGN_OR_RETURN(Dims kernel, KernelOf(call, groups));
            ASSIGN_OR_RETURN(std::vector<SpreadWindow> windows, SpreadWindowsOf(call, kernel));
            RETURN_IF_ERROR(CheckPhases(windows, call.shape(1).dim(1).value() * groups));
            ASSIGN_OR_RETURN(auto y, SpreadOut(d, d.in(1), windows, groups));
            if (!call.has_input(2)) return y;
            RETURN_IF_ERROR(call.CheckSameType(0, 2));
            if (call.shape(2) != Shape({call.shape(1).dim(1) * groups})) {
              return InvalidArgument("input 2 ", call.in(2).ToString(),
                                     ", expected one value for"
                                     " each of ",
                                     (call.shape(1).dim(1) * groups).ToString(),
                                     " output channels");
            }
            ASSIGN_OR_RETURN(auto bias, PerChannel(d, d.in(2), call.shape(0).rank()));
            return d.Apply("Add", {y, bias});
          }};
}

}  // namespace fusion
