#pragma once

#include <onnx/onnx_pb.h>

#include <string>

#include "core/base/status.h"

namespace fusion {

/// Tensors outside of a model name their files relative to the model's own directory. Makes these
/// names, of a model of directory `from`, right for the model file `to`, which may lie elsewhere
/// and need not exist. No file is opened, written or moved; references that are right stay as they
/// are written.
///
/// A model may name files in its own directory and below only. InvalidArgument, naming tensor and
/// file, if `to` would have to name another one, or is itself a file that holds weights; `model` is
/// as it was then. NotFound if the directory of `to` is none.
absl::Status RebaseExternalData(const std::string& from, const std::string& to,
                                onnx::ModelProto* model);

}  // namespace fusion
