#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/tensor/dtype.h"

namespace fusion {

/// Element type of an ONNX number (TensorProto.DataType); nullopt for types that DType lacks
/// (strings, complex). Only the numbers are known here: this layer includes no ONNX headers.
std::optional<DType> DTypeFromOnnx(int64_t code);
/// Inverse of DTypeFromOnnx.
int32_t DTypeToOnnx(DType type);

/// "INT4 (22)": names an element type in messages, including types that DType lacks or that are
/// newer than the ONNX headers of the build. "number 99" if ONNX has no such number.
std::string OnnxTypeName(int64_t code);

}  // namespace fusion
