#pragma once

#include <onnx/onnx_pb.h>

#include <map>
#include <string>

#include "core/base/status.h"

namespace fusion {

/// Makes constants of inputs, by name: a plan for one value, where shapes or numbers of passes
/// follow from it. A value is a number, for inputs of one element, or a file (.npy, .pb). Bad
/// input, naming the option, for an input that the model has not and for what does not fit it.
absl::Status FixInputs(const std::map<std::string, std::string>& values, onnx::ModelProto* model);

}  // namespace fusion
