#include "core/op/forms.h"
#include "core/op/indexed/signal.h"

namespace fusion {

namespace {

absl::StatusOr<int> TransformedAxis(const OpCall& call) {
  RETURN_IF_ERROR(call.CheckRankAtLeast(0, 2));
  const int rank = call.shape(0).rank();
  ASSIGN_OR_RETURN(int axis, call.NormaliseAxis(call.attrs().Int("axis", -2), rank));
  if (axis < rank - 1) return axis;
  return InvalidArgument("axis ", axis, " is the last dim of input 0 ", call.in(0).ToString(),
                         ", which holds real and imaginary parts");
}

absl::StatusOr<Decomposition::Value> DecomposeDft(Decomposition& d) {
  const OpCall& call = d.call();
  RETURN_IF_ERROR(CheckFloat(call, 0));
  ASSIGN_OR_RETURN(const int axis, TransformedAxis(call));
  const Dim& extent = call.shape(0).dim(axis);
  if (!extent.is_static()) {
    return Unimplemented("a transform along the symbolic dim ", extent.ToString(), " of input 0 ",
                         call.in(0).ToString());
  }
  FourierTransform how = {.length = extent.value(),
                          .onesided = call.attrs().Int("onesided", 0) != 0,
                          .inverse = call.attrs().Int("inverse", 0) != 0};
  if (how.to_real()) how.length = 2 * (how.length - 1);
  how.length = call.attrs().Int("dft_length", how.length);
  // The dim that is transformed changes places with those between it and the last one.
  const int rank = call.shape(0).rank();
  if (axis == rank - 2) return Transformed(d, d.in(0), how);
  Dims there;
  Dims back;
  for (int64_t i = 0; i < rank; ++i) {
    if (i != axis) there.push_back(i);
    back.push_back(i <= axis ? i : i - 1);
  }
  there.insert(there.end() - 1, axis);
  back[static_cast<size_t>(axis)] = rank - 2;
  back.back() = rank - 1;
  ASSIGN_OR_RETURN(auto x, d.Apply("Transpose", {d.in(0)}, {{"perm", there}}));
  ASSIGN_OR_RETURN(auto y, Transformed(d, x, how));
  return d.Apply("Transpose", {y}, {{"perm", back}});
}

}  // namespace

/// y[.., k, .., :] = the sum over n along `axis` of x[.., n, .., :] e^(-2 pi i k n / length), or
/// with `inverse` the inverse transform; `dft_length`, a constant, cuts x off or adds zeros. The
/// last dim holds real and imaginary parts, that of x may hold real ones alone; with `onesided`
/// only the first half of the results or, inverse, of x, and real results.
OpDef DefineDft() {
  return {.name = "DFT",
          .params = {{.name = "dft_length", .kind = ParamSpec::kInt, .onnx_input = 1},
                     {.name = "axis", .kind = ParamSpec::kInt, .onnx_input = 2},
                     {.name = "inverse", .kind = ParamSpec::kInt},
                     {.name = "onesided", .kind = ParamSpec::kInt}},
          .min_opset = 17,
          .decompose = DecomposeDft,
          .normalise = [](OnnxCall& call) -> absl::Status {
            // Before opset 20 an attribute, 1 if it was absent.
            if (call.opset < 20 && !call.attrs.Has("axis")) call.attrs.Set("axis", int64_t{1});
            return absl::OkStatus();
          }};
}

}  // namespace fusion
