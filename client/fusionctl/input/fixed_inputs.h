#pragma once

#include <onnx/onnx_pb.h>

#include <map>
#include <string>

#include "core/base/status.h"

namespace fusion {

/// Replaces inputs of the model by constants (--fix): plans for one value, if shapes or numbers of
/// loop passes depend on it. `values`, by name of the input: a number, for inputs of one element,
/// or a file (.npy, .pb). Bad input, naming the option, if there is no such input or a value does
/// not match it.
absl::Status FixInputs(const std::map<std::string, std::string>& values, onnx::ModelProto* model);

}  // namespace fusion
