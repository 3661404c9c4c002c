#pragma once

#include <onnx/onnx_pb.h>

#include <string>

#include "core/onnx/tensor_proto.h"

namespace fusion {

/// Location of a weight in a model made for sending: "the client has it, under the tensor's name".
/// It is no file name and never opened.
inline constexpr std::string_view kClientWeightLocation = "fusiond:weight";

/// Reads the bytes of a tensor stored outside of its model (data_location EXTERNAL): keys
/// "location" (a file, relative to `directory`), "offset" and "length" (bytes, decimal).
///
/// Model files come from strangers: the file must lie inside `directory`, also after symbolic links
/// are followed, and be a regular file. Nothing is allocated before its length is known to do.
/// Reads the file at every call. Any thread.
///
/// Errors name the tensor and the file: NotFound if there is no such file; InvalidArgument for a
/// path that leaves `directory`, bad offset or length, a file that is too short;
/// FailedPrecondition if the bytes were left with a client (kClientWeightLocation).
absl::StatusOr<HostTensor> ReadExternalTensor(const onnx::TensorProto& tensor,
                                              const std::string& directory, std::string_view what);

/// ReadInlineTensor or ReadExternalTensor, whichever the tensor asks for.
absl::StatusOr<HostTensor> ReadTensor(const onnx::TensorProto& tensor, const std::string& directory,
                                      std::string_view what);

/// Makes `tensor` refer to bytes that stay with the client: type, extents and name remain.
void ReferToClient(onnx::TensorProto* tensor);

}  // namespace fusion
