#include "core/op/forms.h"
#include "core/op/forms/resampling.h"

namespace fusion {

namespace {

absl::StatusOr<Resampling> UpsamplingOf(const AttrMap& attrs) {
  Resampling how{.coordinates = ResampleCoordinates::kAsymmetric,
                 .rounding = ResampleRounding::kFloor};
  const auto* mode = attrs.Find<std::string>("mode");
  if (mode == nullptr || *mode == "nearest") return how;
  how.filter = ResampleFilter::kLinear;
  if (*mode == "linear") return how;
  return InvalidArgument("attribute \"mode\" is ", QuoteShort(*mode),
                         ", expected nearest or linear");
}

}  // namespace

/// y[i] = x[i / scale] along each dim: the element before that place or, with mode linear, the
/// elements around it, weighted by how near they are
OpDef DefineUpsample() {
  return {
      .name = "Upsample",
      .params = {{.name = "mode", .kind = ParamSpec::kString},
                 {.name = "scales", .kind = ParamSpec::kFloats, .onnx_input = 1, .required = true}},
      .min_opset = 7,
      .max_opset = 10,
      .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
        const OpCall& call = d.call();
        const auto& scales = *call.attrs().Find<std::vector<double>>("scales");
        const int rank = call.shape(0).rank();
        ASSIGN_OR_RETURN(Resampling how, UpsamplingOf(call.attrs()));
        if (scales.size() != static_cast<size_t>(rank)) {
          return InvalidArgument("scales has ", scales.size(), " entries, expected ", rank,
                                 ": one for each dim of input 0 ", call.in(0).ToString());
        }
        std::vector<ResampledDim> dims;
        for (int axis = 0; axis < rank; ++axis) {
          const double scale = scales[static_cast<size_t>(axis)];
          const Dim& extent = call.shape(0).dim(axis);
          if (!(scale >= 1)) {
            return InvalidArgument("scales has the entry ", scale, ", expected at least 1");
          }
          if (scale == 1) continue;
          if (!extent.is_static()) {
            return Unimplemented("resizing the symbolic dim ", extent.ToString());
          }
          ASSIGN_OR_RETURN(int64_t resized, ScaledExtent(extent.value(), scale));
          dims.push_back({.axis = axis,
                          .original = extent.value(),
                          .resized = resized,
                          .scale = scale,
                          .length = static_cast<double>(extent.value()) * scale});
        }
        return Resampled(d, how, std::move(dims));
      }};
}

}  // namespace fusion
