#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/tensor/dtype.h"

namespace fusion {

/// Element type from the number ONNX gives it (TensorProto.DataType); nullopt for types we have no
/// use for (strings, complex). Only the numbers are known here:
/// this layer is free of ONNX headers.
std::optional<DType> DTypeFromOnnx(int64_t code);
/// Inverse of DTypeFromOnnx.
int32_t DTypeToOnnx(DType type);

/// "INT4 (22)": an element type for messages, those included that we refuse or that are newer than
/// the ONNX we build with. "number 99" if ONNX has none of that number.
std::string OnnxTypeName(int64_t code);

}  // namespace fusion
