#include "core/op/forms.h"
#include "core/op/forms/windows.h"
#include "core/op/indexed/scatter.h"

namespace fusion {

namespace {

// The extents whose positions the indices name: those a MaxPool with these attributes could have
// read.
absl::StatusOr<Dims> UnpooledDims(const OpCall& call) {
  RETURN_IF_ERROR(call.CheckRankAtLeast(0, 3));
  AttrMap attrs = call.attrs();
  attrs.Erase("output_shape");
  const OpCall windows_only(call.def(), {call.in(0)}, std::move(attrs));
  ASSIGN_OR_RETURN(std::vector<SpreadWindow> windows,
                   SpreadWindowsOf(windows_only, call.attrs().Ints("kernel_shape")));
  ASSIGN_OR_RETURN(Dims dims, StaticDims(call, 0));
  dims.resize(2);
  for (const SpreadWindow& w : windows) dims.push_back(w.count);
  return dims;
}

// Elements to add behind each dim of `dims`, as `output_shape` asks.
absl::StatusOr<Dims> RoomBehind(const OpCall& call, const Dims& dims) {
  const Dims wanted = call.attrs().Ints("output_shape", dims);
  Dims room(dims.size(), 0);
  bool fits = wanted.size() == dims.size();
  for (size_t i = 0; fits && i < dims.size(); ++i) {
    fits = i < 2 ? wanted[i] == dims[i] : wanted[i] >= dims[i] && wanted[i] <= kMaxExtent;
    if (fits) room[i] = wanted[i] - dims[i];
  }
  if (fits) return room;
  return InvalidArgument("output_shape is ", DimsToString(wanted), ", expected at least ",
                         DimsToString(dims), ", batch and channels the same");
}

}  // namespace

/// y = zeros, but x[i..] at position indices[i..], row-major, of the tensor that MaxPool made x of;
/// if two elements have one position, the last one. With `output_shape`, a constant, zeros are
/// added behind each spatial dim. Each position looks at all indices.
OpDef DefineMaxUnpool() {
  return {.name = "MaxUnpool",
          .min_inputs = 2,
          .max_inputs = 2,
          .params = {{.name = "kernel_shape", .kind = ParamSpec::kInts, .required = true},
                     {.name = "pads", .kind = ParamSpec::kInts},
                     {.name = "strides", .kind = ParamSpec::kInts},
                     {.name = "output_shape", .kind = ParamSpec::kInts, .onnx_input = 2}},
          .min_opset = 9,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            RETURN_IF_ERROR(CheckFloat(call, 0));
            if (call.in(1) != TensorType{DType::kI64, call.shape(0)}) {
              return InvalidArgument("input 1 is ", call.in(1).ToString(), ", expected i64",
                                     call.shape(0).ToString());
            }
            ASSIGN_OR_RETURN(Dims dims, UnpooledDims(call));
            ASSIGN_OR_RETURN(Dims room, RoomBehind(call, dims));
            ASSIGN_OR_RETURN(int64_t positions, CheckedNumElements(dims, 1));
            const int64_t elements = NumElements(call.shape(0).ToDims());
            auto reshaped = [&](Decomposition::Value v, const Dims& shape) {
              return d.Apply("Reshape", {v}, {{"shape", shape}, {"allowzero", int64_t{1}}});
            };
            ASSIGN_OR_RETURN(auto y, d.Apply("Expand", {d.Scalar(call.dtype(0), 0)},
                                             {{"shape", Dims{positions}}}));
            if (elements > 0) {
              ASSIGN_OR_RETURN(auto x, reshaped(d.in(0), {elements}));
              ASSIGN_OR_RETURN(auto at, reshaped(d.in(1), {elements}));
              ASSIGN_OR_RETURN(ScatterReduction replace, ScatterReductionOf(call));
              ASSIGN_OR_RETURN(y, ScatterAlong(d, y, at, x, /*axis=*/0, replace));
            }
            ASSIGN_OR_RETURN(y, reshaped(y, dims));
            if (!call.attrs().Has("output_shape")) return y;
            Dims pads(dims.size(), 0);
            pads.insert(pads.end(), room.begin(), room.end());
            return d.Apply("Pad", {y}, {{"pads", pads}});
          }};
}

}  // namespace fusion
