#include "core/op/forms.h"

namespace fusion {

namespace {

// The type of the per-channel arithmetic: the statistics may be wider than the data (opset 15).
DType WidestType(const OpCall& call) {
  DType type = call.dtype(0);
  for (int i = 1; i < call.inputs(); ++i) {
    if (DTypeBytes(call.dtype(i)) > DTypeBytes(type)) type = call.dtype(i);
  }
  bool same = true;
  for (int i = 1; i < call.inputs(); ++i) same &= call.dtype(i) == call.dtype(0);
  return same || type == DType::kF64 ? type : DType::kF32;
}

absl::Status CheckBatchNormalization(const OpCall& call) {
  if (call.attrs().Int("training_mode", 0) != 0) {
    return Unimplemented("attribute \"training_mode\" is 1: only inference is supported");
  }
  if (call.attrs().Int("spatial", 1) == 0) {
    return Unimplemented("attribute \"spatial\" is 0: only statistics per channel are supported");
  }
  if (call.outputs() > 1) {
    return Unimplemented(
        "outputs 1 and up hold statistics of training: only inference is supported");
  }
  RETURN_IF_ERROR(call.CheckRankAtLeast(0, 1));
  Dim channels = call.shape(0).rank() > 1 ? call.shape(0).dim(1) : Dim(1);
  static constexpr const char* kNames[] = {"", "scale", "bias", "mean", "variance"};
  for (int i = 0; i < call.inputs(); ++i) {
    if (!IsFloat(call.dtype(i))) {
      return InvalidArgument("input ", i, " is ", DTypeName(call.dtype(i)),
                             ", expected a float type");
    }
    if (i > 0 && call.shape(i) != Shape({channels})) {
      return InvalidArgument("input ", i, " (", kNames[i], ") is ", call.in(i).ToString(),
                             ", expected one value for each of the ", channels.ToString(),
                             " channels of input 0 ", call.in(0).ToString());
    }
  }
  return absl::OkStatus();
}

}  // namespace

/// y = x * s + t per channel, where s = scale / sqrt(variance + epsilon) and t = bias - mean * s
OpDef DefineBatchNormalization() {
  return {.name = "BatchNormalization",
          .min_inputs = 5,
          .max_inputs = 5,
          .params = {{.name = "epsilon", .kind = ParamSpec::kFloat},
                     {.name = "momentum", .kind = ParamSpec::kFloat},
                     {.name = "spatial", .kind = ParamSpec::kInt},
                     {.name = "training_mode", .kind = ParamSpec::kInt}},
          .max_outputs = 5,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            RETURN_IF_ERROR(CheckBatchNormalization(call));
            int rank = call.shape(0).rank();
            DType type = WidestType(call);
            Decomposition::Value in[5];
            for (int i = 0; i < 5; ++i) {
              ASSIGN_OR_RETURN(in[i], CastTo(d, d.in(i), type));
            }
            auto epsilon = d.Scalar(type, call.attrs().Float("epsilon", 1e-5));
            ASSIGN_OR_RETURN(auto safe, d.Apply("Add", {in[4], epsilon}));
            ASSIGN_OR_RETURN(auto deviation, d.Apply("Sqrt", {safe}));
            ASSIGN_OR_RETURN(auto scale, d.Apply("Div", {in[1], deviation}));
            ASSIGN_OR_RETURN(auto moved, d.Apply("Mul", {in[3], scale}));
            ASSIGN_OR_RETURN(auto shift, d.Apply("Sub", {in[2], moved}));
            ASSIGN_OR_RETURN(scale, PerChannel(d, scale, rank));
            ASSIGN_OR_RETURN(shift, PerChannel(d, shift, rank));
            ASSIGN_OR_RETURN(auto scaled, d.Apply("Mul", {in[0], scale}));
            ASSIGN_OR_RETURN(auto y, d.Apply("Add", {scaled, shift}));
            return CastTo(d, y, call.dtype(0));
          },
          .normalise = [](OnnxCall& call) -> absl::Status {
            if (call.opset >= 7) return absl::OkStatus();
            if (call.attrs.Int("is_test", 0) == 0) call.attrs.Set("training_mode", int64_t{1});
            call.attrs.Erase("is_test");
            return absl::OkStatus();
          }};
}

}  // namespace fusion
