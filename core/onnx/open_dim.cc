#include "core/onnx/open_dim.h"

#include "core/base/text/text.h"

namespace fusion {

bool IsUnknownDim(const onnx::TensorShapeProto_Dimension& dim) {
  if (dim.has_dim_value()) return dim.dim_value() == -1;
  return dim.dim_param().empty() || dim.dim_param() == "?";
}

std::optional<std::string> OpenDimName(const onnx::ValueInfoProto& input, int axis) {
  const auto& dim = input.type().tensor_type().shape().dim(axis);
  if (IsUnknownDim(dim)) return StrCat(input.name(), "[", axis, "]");
  if (dim.has_dim_value()) return std::nullopt;
  return dim.dim_param();
}

}  // namespace fusion
