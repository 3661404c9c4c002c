#pragma once

#include <onnx/onnx_pb.h>

#include <optional>
#include <string>

namespace fusion {

/// True if the declared type leaves this dim unknown: it has neither a number nor a name, or one of
/// the markers of exporters, -1 and "?". "?" is not a symbol: two dims "?" need not be equal.
bool IsUnknownDim(const onnx::TensorShapeProto_Dimension& dim);

/// The name by which a caller binds dim `axis` of an input: its dim_param, or "x[2]" for unknown
/// dim 2 of input "x"; nullopt if the model states its number. The input must be a tensor with a
/// shape of more than `axis` dims.
std::optional<std::string> OpenDimName(const onnx::ValueInfoProto& input, int axis);

}  // namespace fusion
