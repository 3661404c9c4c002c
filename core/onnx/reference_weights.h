#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

#include "core/onnx/inline_rule.h"

namespace fusion {

struct ReferenceOptions {
  /// Constants above this many bytes are replaced by references, unless InlineRule keeps them.
  int64_t limit_bytes = kInlineLimitBytes;
  /// Where external data files of the model lie (ModelDirectory).
  std::string directory = ".";
  /// Initialisers that the caller overrides (OverridableInitializers): they become inputs like any
  /// other, of the declared type, or of the initialiser's where the model declares no shape.
  std::vector<std::string> overridden;
};

/// The model as it is sent to be planned: initialisers and tensors of Constant nodes of the main
/// graph that are weights (see InlineRule) keep name, type and extents and lose their bytes: they
/// become EXTERNAL with location kClientWeightLocation. Constants that stay inline but are stored
/// in external files are read in. What planning does not look at (documentation, metadata, training
/// graphs, names of files) is left out. Groups that are nodes (group_calls.h) are looked into.
/// Bodies of functions and subgraphs are kept as they are.
///
///   ASSIGN_OR_RETURN(onnx::ModelProto model, LoadModel("bert.onnx"));
///   ASSIGN_OR_RETURN(onnx::ModelProto request, ReferenceWeights(model));   // 340 MB -> 32 KB
///   WeightSource weights(std::move(model), ".");                           // the bytes, by name
///
/// Copies no weight bytes. `model` is not changed; any thread. Errors name the tensor: element
/// types that are not supported, external files that are missing, what cannot be overridden.
absl::StatusOr<onnx::ModelProto> ReferenceWeights(const onnx::ModelProto& model,
                                                  const ReferenceOptions& options = {});

}  // namespace fusion
