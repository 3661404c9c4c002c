#pragma once

#include <onnx/onnx_pb.h>

#include <set>
#include <string>

#include "client/fusionctl/args/arguments.h"

namespace fusion {

/// The initialisers that a command overrides: those of --as-input, and those that --input or the
/// files of --data name. Files without names count by number where there is one for every graph
/// input. Of the files only what they say of their tensors is read. Bad input if --as-input or
/// --input names an initialiser that cannot be overridden.
absl::StatusOr<std::set<std::string>> OverriddenInitializers(const onnx::ModelProto& model,
                                                             const Arguments& arguments);

}  // namespace fusion
