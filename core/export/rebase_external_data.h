#pragma once

#include <onnx/onnx_pb.h>

#include <string>

#include "core/base/status.h"

namespace fusion {

/// Tensors with external data name their files relative to the directory of the model file.
/// Rewrites these names from directory `from` to the directory of the model file `to`, which need
/// not exist. No file is opened, written or moved. References that stay valid are not changed.
///
/// A model may refer only to files in its own directory or below. InvalidArgument, naming tensor
/// and file, if `to` would have to refer to another file, or is itself a file with weights.
/// NotFound if `from` or the directory of `to` does not exist. On error `model` is unchanged.
absl::Status RebaseExternalData(const std::string& from, const std::string& to,
                                onnx::ModelProto* model);

}  // namespace fusion
