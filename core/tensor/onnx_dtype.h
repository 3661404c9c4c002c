#pragma once

#include <cstdint>
#include <optional>

#include "core/tensor/dtype.h"

namespace fusion {

/// Element type from the number ONNX gives it (TensorProto.DataType); nullopt for types we have no
/// use for (strings, complex). Only the numbers are known here:
/// this layer is free of ONNX headers.
std::optional<DType> DTypeFromOnnx(int64_t code);
/// Inverse of DTypeFromOnnx.
int32_t DTypeToOnnx(DType type);

}  // namespace fusion
