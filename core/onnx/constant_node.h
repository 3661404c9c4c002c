#pragma once

#include <onnx/onnx_pb.h>

#include <string>

#include "core/onnx/tensor_proto.h"

namespace fusion {

/// True for the domain of ONNX's own ops ("" or "ai.onnx").
inline bool IsDefaultDomain(std::string_view domain) {
  return domain.empty() || domain == "ai.onnx";
}

inline bool IsConstantNode(const onnx::NodeProto& node) {
  return node.op_type() == "Constant" && IsDefaultDomain(node.domain());
}

/// A copy of the tensor of a Constant node, named after the node's output. `value` is copied as it
/// is; value_int, value_ints, value_float and value_floats become raw_data. `what` names the node
/// in messages. Unimplemented for strings and sparse tensors; InvalidArgument unless exactly one
/// attribute gives the value.
absl::StatusOr<onnx::TensorProto> ConstantNodeTensor(const onnx::NodeProto& node,
                                                     std::string_view what);

/// ReadTensorHeader of ConstantNodeTensor, without copying bytes. Errors of both.
absl::StatusOr<TensorHeader> ConstantNodeHeader(const onnx::NodeProto& node, std::string_view what);

}  // namespace fusion
