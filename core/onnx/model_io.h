#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <string_view>

#include "core/base/status.h"

namespace fusion {

/// Reads and writes whole ONNX models. Checks the protobuf encoding and that there is a graph, but
/// no other content.
///
///   ASSIGN_OR_RETURN(onnx::ModelProto model, LoadModel("bert.onnx"));
///
/// Files may be up to 2 GiB - 1 byte long, the limit of protobuf. Any thread.
///
/// Errors: NotFound if the file cannot be opened; FailedPrecondition if reading fails;
/// InvalidArgument if it is empty, truncated, too long, not a regular file or not an ONNX model.
/// The message states the reason and, for a broken encoding, the byte.
absl::StatusOr<onnx::ModelProto> LoadModel(const std::string& path);

/// The same from memory; only InvalidArgument. `what` names the bytes in messages.
absl::StatusOr<onnx::ModelProto> ParseModel(std::string_view bytes,
                                            std::string_view what = "ONNX model");

/// Writes `model` to `path`; replaces a regular file. Not atomic. FailedPrecondition if the file
/// cannot be written (with the payload kUnwritable if the disk is full or read-only);
/// InvalidArgument if the model is longer than protobuf allows or `path` is not a regular file.
absl::Status SaveModel(const onnx::ModelProto& model, const std::string& path);

/// The directory of a model file, to which its external data is relative; "." for a bare file name.
std::string ModelDirectory(const std::string& path);

}  // namespace fusion
