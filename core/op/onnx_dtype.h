#pragma once

#include <cstdint>
#include <optional>

#include "core/tensor/dtype.h"

namespace fusion {

/// Element type from ONNX's TensorProto.DataType number; nullopt for types we have no use for (strings, complex, fp8).
std::optional<DType> DTypeFromOnnx(int64_t code);
/// Inverse of DTypeFromOnnx.
int32_t DTypeToOnnx(DType type);

}  // namespace fusion
