#pragma once

#include <onnx/onnx_pb.h>

#include <optional>
#include <string>

namespace fusion {

/// True if a declared type says nothing about this dim: it has neither number nor name, or what
/// exporters write for "unknown": -1 or "?", which names no symbol, as two dims that are "?" need
/// not be equal.
bool IsUnknownDim(const onnx::TensorShapeProto_Dimension& dim);

/// What a caller binds a dim of an input by: its dim_param, or "x[2]" for an unknown dim of input
/// "x"; nullopt if the model says its number.
std::optional<std::string> OpenDimName(const onnx::ValueInfoProto& input, int axis);

}  // namespace fusion
