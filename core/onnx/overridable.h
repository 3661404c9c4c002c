#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

#include "core/base/status.h"

namespace fusion {

/// The initialisers that a caller may override: those of the main graph that are graph inputs too,
/// in the order of the inputs. Models before IR version 4 have none: there every initialiser had to
/// be an input.
std::vector<std::string> OverridableInitializers(const onnx::ModelProto& model);

/// OK if `name` is one of them; else InvalidArgument, saying what it is instead.
absl::Status CheckOverridable(const onnx::ModelProto& model, const std::string& name);

}  // namespace fusion
