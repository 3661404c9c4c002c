#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

#include "core/onnx/inline_rule.h"

namespace fusion {

struct ReferenceOptions {
  /// InlineRule's limit: larger constants become references unless the rule keeps them inline.
  int64_t limit_bytes = kInlineLimitBytes;
  /// Directory of the model's external data files (ModelDirectory).
  std::string directory = ".";
  /// Initialisers that the caller overrides (OverridableInitializers): they become plain inputs
  /// with their declared type; without a declared shape they get that of the initialiser.
  std::vector<std::string> overridden;
};

/// A copy of the model for a planning request, without the bytes of weights. Weights (see
/// InlineRule; initialisers and Constant nodes of the main graph) keep name, type and extents and
/// become EXTERNAL with location kClientWeightLocation. Constants that stay inline are read if they
/// are in external files. Parts that planning ignores (documentation, metadata, training graphs,
/// file names) are omitted. The rule sees uses inside group calls (group_calls.h). Functions and
/// subgraphs are copied unchanged.
///
///   ASSIGN_OR_RETURN(onnx::ModelProto model, LoadModel("bert.onnx"));
///   ASSIGN_OR_RETURN(onnx::ModelProto request, ReferenceWeights(model));   // 340 MB -> 32 KB
///   WeightSource weights(std::move(model), ".");                           // the bytes, by name
///
/// Copies no weight bytes of the main graph. Any thread. Errors name the tensor: those of
/// ReadTensorHeader (unsupported element types), ReadExternalTensor (missing files) and
/// CheckOverridable.
absl::StatusOr<onnx::ModelProto> ReferenceWeights(const onnx::ModelProto& model,
                                                  const ReferenceOptions& options = {});

}  // namespace fusion
