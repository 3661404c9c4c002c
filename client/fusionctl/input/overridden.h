#pragma once

#include <onnx/onnx_pb.h>

#include <set>
#include <string>

#include "client/fusionctl/args/arguments.h"

namespace fusion {

/// The initialisers that a command overrides: those that --as-input, --input or the files of --data
/// name. If none of the files has a known name and there is one for every graph input, they are
/// assigned by number and override all. Only names in the files are read. Bad input if --as-input
/// or --input names an initialiser that cannot be overridden.
absl::StatusOr<std::set<std::string>> OverriddenInitializers(const onnx::ModelProto& model,
                                                             const Arguments& arguments);

}  // namespace fusion
