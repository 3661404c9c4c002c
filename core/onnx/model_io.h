#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <string_view>

#include "core/base/status.h"

namespace fusion {

/// Reading and writing whole ONNX models. Nothing is interpreted here beyond the protobuf encoding.
///
///   ASSIGN_OR_RETURN(onnx::ModelProto model, LoadModel("bert.onnx"));
///
/// Files may be up to 2 GiB - 1 byte long, the limit of protobuf. Any thread.
///
/// Errors: NotFound if the file cannot be opened; InvalidArgument if it is empty, truncated, too
/// long or no ONNX model, saying which of these and where the encoding breaks off.
absl::StatusOr<onnx::ModelProto> LoadModel(const std::string& path);

/// The same from memory. `what` names the bytes in messages.
absl::StatusOr<onnx::ModelProto> ParseModel(std::string_view bytes,
                                            std::string_view what = "ONNX model");

/// Writes `model` to `path`, replacing what is there. FailedPrecondition if the file cannot be
/// written, InvalidArgument if the model is longer than protobuf allows.
absl::Status SaveModel(const onnx::ModelProto& model, const std::string& path);

/// The directory of a model file: where its external data lies. "." for a bare file name.
std::string ModelDirectory(const std::string& path);

}  // namespace fusion
