#pragma once

#include <onnx/onnx_pb.h>

#include <string>

#include "core/onnx/tensor_proto.h"

namespace fusion {

/// True for an op of ONNX's own set ("" or "ai.onnx").
inline bool IsDefaultDomain(std::string_view domain) {
  return domain.empty() || domain == "ai.onnx";
}

inline bool IsConstantNode(const onnx::NodeProto& node) {
  return node.op_type() == "Constant" && IsDefaultDomain(node.domain());
}

/// The tensor of a Constant node, whichever attribute carries it (value, value_int, value_ints,
/// value_float, value_floats); the others are written as raw_data. `what` names the node in
/// messages. Unimplemented for strings and sparse tensors; InvalidArgument unless exactly one
/// attribute gives the value.
absl::StatusOr<onnx::TensorProto> ConstantNodeTensor(const onnx::NodeProto& node,
                                                     std::string_view what);

/// Type and extents alone: like ReadTensorHeader of ConstantNodeTensor, without copying bytes.
absl::StatusOr<TensorHeader> ConstantNodeHeader(const onnx::NodeProto& node, std::string_view what);

}  // namespace fusion
