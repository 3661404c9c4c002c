#include "core/op/forms.h"
#include "core/op/forms/resampling.h"
#include "core/op/forms/sampling.h"
#include "core/op/forms/windows.h"

namespace fusion {

namespace {

/// The inputs of DeformConv, by number.
enum DeformInput { kDeformedX, kDeformWeight, kDeformOffset, kDeformBias, kDeformMask };

struct DeformParams {
  int64_t groups = 1;
  int64_t offset_groups = 1;
  std::vector<Window> windows;  // over height and width
};

absl::StatusOr<DeformParams> DeformParamsOf(const OpCall& call) {
  RETURN_IF_ERROR(CheckFloat(call, kDeformedX));
  for (int i = 1; i < call.inputs(); ++i) {
    if (call.has_input(i)) RETURN_IF_ERROR(call.CheckSameType(kDeformedX, i));
  }
  ASSIGN_OR_RETURN(Dims x, StaticDims(call, kDeformedX));
  ASSIGN_OR_RETURN(Dims w, StaticDims(call, kDeformWeight));
  if (x.size() != 4) {
    return Unimplemented("input 0 is ", call.in(kDeformedX).ToString(),
                         "; supported: [batch, channels, height, width]");
  }
  DeformParams out{.groups = call.attrs().Int("group", 1),
                   .offset_groups = call.attrs().Int("offset_group", 1)};
  if (w.size() != 4 || out.groups < 1 || w[0] % out.groups != 0 || w[1] < 1 || x[1] % w[1] != 0 ||
      x[1] / w[1] != out.groups) {
    return InvalidArgument("input 1 is ", call.in(kDeformWeight).ToString(),
                           " and attribute \"group\" is ", out.groups,
                           ", expected [output channels, channels of a group, height, width] for ",
                           "input 0 ", call.in(kDeformedX).ToString());
  }
  if (out.offset_groups < 1 || x[1] % out.offset_groups != 0) {
    return InvalidArgument("attribute \"offset_group\" is ", out.offset_groups,
                           ", expected a divisor of the ", x[1], " channels");
  }
  const Dims kernel = {w[2], w[3]};
  if (call.attrs().Has("kernel_shape") && call.attrs().Ints("kernel_shape") != kernel) {
    return InvalidArgument("attribute \"kernel_shape\" is [",
                           StrJoin(call.attrs().Ints("kernel_shape"), ","), "], input 1 is ",
                           call.in(kDeformWeight).ToString());
  }
  ASSIGN_OR_RETURN(out.windows, WindowsOf(call, kernel));
  for (const Window& window : out.windows) {
    if (window.extent < 1) {
      return InvalidArgument("input 0 ", call.in(kDeformedX).ToString(),
                             " has no element to sample");
    }
  }
  if (out.offset_groups > kMaxExtent / (2 * w[2] * w[3])) {
    return InvalidArgument("attribute \"offset_group\" is ", out.offset_groups);
  }
  const int64_t taps = out.offset_groups * w[2] * w[3];
  auto check = [&](int input, int64_t channels) -> absl::Status {
    const Shape wanted({x[0], channels, out.windows[0].count, out.windows[1].count});
    if (!call.has_input(input) || call.shape(input) == wanted) return absl::OkStatus();
    return InvalidArgument("input ", input, " is ", call.in(input).ToString(), ", expected ",
                           wanted.ToString());
  };
  RETURN_IF_ERROR(check(kDeformOffset, 2 * taps));
  RETURN_IF_ERROR(check(kDeformMask, taps));
  if (call.has_input(kDeformBias) && call.shape(kDeformBias) != Shape({w[0]})) {
    return InvalidArgument("input 3 is ", call.in(kDeformBias).ToString(),
                           ", expected one value for each of the ", w[0], " output channels");
  }
  return out;
}

/// One of the two elements along a dim that a place lies between; all [batch, offset group, kernel
/// height, kernel width, height, width].
struct DeformTap {
  Decomposition::Value index = 0;
  Decomposition::Value inside = 0;
  Decomposition::Value weight = 0;
};

/// The steps of a DeformConv.
class DeformConvolution {
 public:
  using Value = Decomposition::Value;

  DeformConvolution(Decomposition& d, const DeformParams& params)
      : d_(d),
        params_(params),
        type_(InterpolationType(d.call().dtype(kDeformedX))),
        x_dims_(d.call().shape(kDeformedX).ToDims()),
        w_dims_(d.call().shape(kDeformWeight).ToDims()) {}

  absl::StatusOr<Value> Run() {
    ASSIGN_OR_RETURN(auto samples, Samples());
    // [batch, group, channel of it and place in the kernel, place in the output]
    const int64_t groups = params_.groups;
    const int64_t places = params_.windows[0].count * params_.windows[1].count;
    const int64_t terms = w_dims_[1] * w_dims_[2] * w_dims_[3];
    ASSIGN_OR_RETURN(samples,
                     d_.Apply("Transpose", {samples}, {{"perm", Dims{0, 1, 6, 2, 3, 4, 5}}}));
    ASSIGN_OR_RETURN(samples, Reshaped(samples, {x_dims_[0], groups, terms, places}));
    ASSIGN_OR_RETURN(samples, CastTo(d_, samples, d_.call().dtype(kDeformedX)));
    ASSIGN_OR_RETURN(auto w, Reshaped(d_.in(kDeformWeight), {groups, w_dims_[0] / groups, terms}));
    ASSIGN_OR_RETURN(auto y, d_.Apply("MatMul", {w, samples}));
    ASSIGN_OR_RETURN(y, Reshaped(y, {x_dims_[0], w_dims_[0], params_.windows[0].count,
                                     params_.windows[1].count}));
    if (!d_.call().has_input(kDeformBias)) return y;
    ASSIGN_OR_RETURN(auto bias, PerChannel(d_, d_.in(kDeformBias), 4));
    return d_.Apply("Add", {y, bias});
  }

 private:
  absl::StatusOr<Value> Reshaped(Value x, const Dims& shape) {
    return d_.Apply("Reshape", {x}, {{"shape", shape}, {"allowzero", int64_t{1}}});
  }

  // Input `input` as [batch, offset group, kernel height, kernel width, (dim,) height, width].
  absl::StatusOr<Value> PerTap(int input, bool with_dim) {
    Dims dims = {x_dims_[0], params_.offset_groups, w_dims_[2], w_dims_[3]};
    if (with_dim) dims.push_back(2);
    for (const Window& w : params_.windows) dims.push_back(w.count);
    ASSIGN_OR_RETURN(auto x, Reshaped(d_.in(input), dims));
    return CastTo(d_, x, type_);
  }

  // first + step * 0, 1, .. below `count`, along dim 2 + `at` of those of PerTap.
  absl::StatusOr<Value> Steps(int64_t count, int64_t step, int64_t first, int64_t at) {
    ASSIGN_OR_RETURN(auto x, CountTo(d_, count));
    ASSIGN_OR_RETURN(x, CastTo(d_, x, type_));
    ASSIGN_OR_RETURN(x, d_.Apply("Mul", {x, d_.Scalar(type_, static_cast<double>(step))}));
    ASSIGN_OR_RETURN(x, d_.Apply("Add", {x, d_.Scalar(type_, static_cast<double>(first))}));
    Dims dims(4, 1);
    dims[static_cast<size_t>(at)] = count;
    return Reshaped(x, dims);
  }

  // Along height (0) or width (1).
  absl::Status AddTaps(int64_t i, Value offsets, DeformTap (&taps)[2]) {
    const Window& w = params_.windows[static_cast<size_t>(i)];
    const SampledDim dim{.extent = w.extent, .padding = SamplePadding::kZeros};
    HostTensor at(DType::kI64, {});
    at.SetInt(0, i);
    ASSIGN_OR_RETURN(auto place, d_.Apply("Gather", {offsets, d_.Constant(std::move(at))},
                                          {{"axis", int64_t{4}}}));
    ASSIGN_OR_RETURN(auto in_kernel, Steps(w.kernel, w.dilation, -w.pad_begin, i));
    ASSIGN_OR_RETURN(auto window, Steps(w.count, w.stride, 0, 2 + i));
    ASSIGN_OR_RETURN(auto begin, d_.Apply("Add", {in_kernel, window}));
    ASSIGN_OR_RETURN(place, d_.Apply("Add", {begin, place}));
    for (int64_t offset = 0; offset < 2; ++offset) {
      DeformTap& tap = taps[offset];
      ASSIGN_OR_RETURN(tap.index, SampleIndex(d_, dim, offset, place));
      ASSIGN_OR_RETURN(tap.inside, SampleInside(d_, dim, offset, place));
      ASSIGN_OR_RETURN(tap.weight, SampleWeight(d_, dim, offset, place));
    }
    return absl::OkStatus();
  }

  // What the kernel sees, [batch, offset group, kernel height, kernel width, height, width,
  // channel of the offset group].
  absl::StatusOr<Value> Samples() {
    const int64_t groups = params_.offset_groups;
    ASSIGN_OR_RETURN(auto x, Reshaped(d_.in(kDeformedX), {x_dims_[0], groups, x_dims_[1] / groups,
                                                          x_dims_[2], x_dims_[3]}));
    ASSIGN_OR_RETURN(x, d_.Apply("Transpose", {x}, {{"perm", Dims{0, 1, 3, 4, 2}}}));
    ASSIGN_OR_RETURN(auto offsets, PerTap(kDeformOffset, /*with_dim=*/true));
    DeformTap taps[2][2];
    for (int i = 0; i < 2; ++i) RETURN_IF_ERROR(AddTaps(i, offsets, taps[i]));
    const AttrMap channel = {{"axes", Dims{6}}};
    Value sum = -1;
    for (const DeformTap& h : taps[0]) {
      for (const DeformTap& w : taps[1]) {
        ASSIGN_OR_RETURN(auto y,
                         d_.Apply("GatherAt", {x, h.index, w.index}, {{"batch_dims", int64_t{2}}}));
        ASSIGN_OR_RETURN(y, CastTo(d_, y, type_));
        ASSIGN_OR_RETURN(auto inside, d_.Apply("And", {h.inside, w.inside}));
        ASSIGN_OR_RETURN(inside, d_.Apply("Unsqueeze", {inside}, channel));
        // A weight of 0 would not do: what lies at the border may be infinite.
        ASSIGN_OR_RETURN(y, d_.Apply("Where", {inside, y, d_.Scalar(type_, 0)}));
        ASSIGN_OR_RETURN(auto weight, d_.Apply("Mul", {h.weight, w.weight}));
        ASSIGN_OR_RETURN(weight, d_.Apply("Unsqueeze", {weight}, channel));
        ASSIGN_OR_RETURN(y, d_.Apply("Mul", {y, weight}));
        if (sum >= 0) {
          ASSIGN_OR_RETURN(y, d_.Apply("Add", {sum, y}));
        }
        sum = y;
      }
    }
    if (!d_.call().has_input(kDeformMask)) return sum;
    ASSIGN_OR_RETURN(auto mask, PerTap(kDeformMask, /*with_dim=*/false));
    ASSIGN_OR_RETURN(mask, d_.Apply("Unsqueeze", {mask}, channel));
    return d_.Apply("Mul", {sum, mask});
  }

  Decomposition& d_;
  const DeformParams& params_;
  DType type_;  // of places and sums of neighbours
  Dims x_dims_;
  Dims w_dims_;
};

}  // namespace

/// y = the convolution of x and w where each element of a window is read at a place of its own,
/// moved by `offset` (height and width, in elements of x): a weighted sum of the four elements
/// around it, zeros outside, times `mask`; plus a bias per output channel
OpDef DefineDeformConv() {
  return {.name = "DeformConv",
          .min_inputs = 3,
          .max_inputs = 5,
          .params = {{.name = "dilations", .kind = ParamSpec::kInts},
                     {.name = "group", .kind = ParamSpec::kInt},
                     {.name = "kernel_shape", .kind = ParamSpec::kInts},
                     {.name = "offset_group", .kind = ParamSpec::kInt},
                     {.name = "pads", .kind = ParamSpec::kInts},
                     {.name = "strides", .kind = ParamSpec::kInts}},
          .min_opset = 19,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            ASSIGN_OR_RETURN(DeformParams params, DeformParamsOf(d.call()));
            return DeformConvolution(d, params).Run();
          }};
}

}  // namespace fusion
