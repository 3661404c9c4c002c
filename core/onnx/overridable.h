#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

#include "core/base/status.h"

namespace fusion {

/// Names of the initialisers that a caller may override: those of the main graph that are also
/// graph inputs, in the order of the inputs. None before IR version 4, in which every initialiser
/// had to be an input.
std::vector<std::string> OverridableInitializers(const onnx::ModelProto& model);

/// InvalidArgument unless `name` is one of them; the message states the reason.
absl::Status CheckOverridable(const onnx::ModelProto& model, const std::string& name);

}  // namespace fusion
