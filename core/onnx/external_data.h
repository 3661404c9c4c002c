#pragma once

#include <onnx/onnx_pb.h>

#include <string>

#include "core/onnx/tensor_proto.h"

namespace fusion {

/// External data location of a weight in a model that a client sends: the client keeps the bytes,
/// under the tensor's name. It is not a file name and is never opened.
inline constexpr std::string_view kClientWeightLocation = "fusiond:weight";

/// Reads the bytes of a tensor stored outside of its model (data_location EXTERNAL): keys
/// "location" (a file, relative to `directory`), "offset" and "length" (bytes, decimal).
///
/// Model files are untrusted: the file must be a regular file inside `directory`, also after
/// symbolic links are resolved. Memory is allocated only after the length of the file was checked.
/// `what` names the tensor in messages. Every call reads the file. Any thread.
///
/// Errors name the tensor and the file: NotFound if the file or `directory` cannot be opened;
/// InvalidArgument for a path that leaves `directory`, bad offset or length, a file that is too
/// short or not regular; FailedPrecondition if the client kept the bytes (kClientWeightLocation) or
/// reading fails; ResourceExhausted without memory; else as ReadTensorHeader.
absl::StatusOr<HostTensor> ReadExternalTensor(const onnx::TensorProto& tensor,
                                              const std::string& directory, std::string_view what);

/// ReadExternalTensor if IsExternal(tensor), else ReadInlineTensor.
absl::StatusOr<HostTensor> ReadTensor(const onnx::TensorProto& tensor, const std::string& directory,
                                      std::string_view what);

/// Replaces the bytes of `tensor` by a reference to kClientWeightLocation. Type, extents and name
/// remain.
void ReferToClient(onnx::TensorProto* tensor);

}  // namespace fusion
