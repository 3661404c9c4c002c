#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "core/tensor/host_tensor.h"

namespace fusion {

/// The bytes of the constants of a model's main graph by name: initialisers, and tensors of
/// Constant nodes (by the name of the output). A client keeps one when it sends the model without
/// weights (ReferenceWeights); plans use the same names.
///
///   WeightSource weights(std::move(model), ModelDirectory(path));
///   ASSIGN_OR_RETURN(HostTensor w, weights.Load("encoder.0.query.weight"));
///
/// Owns the model. An external file is read at each Load or Take of its tensor, not before.
/// Concurrent Loads are safe; Take needs exclusive access.
class WeightSource {
 public:
  /// `directory`: the directory of external data files (ModelDirectory).
  explicit WeightSource(onnx::ModelProto model, std::string directory = ".");

  /// Names in the order of the model, initialisers first. For equal names the last constant counts.
  const std::vector<std::string>& names() const { return names_; }

  /// A copy of the tensor. NotFound if there is no such constant; FailedPrecondition after Take;
  /// else as ReadTensor.
  absl::StatusOr<HostTensor> Load(const std::string& name) const;

  /// The same, and frees the bytes in the model, so that a large tensor is in memory once. A later
  /// Load or Take of such a tensor is FailedPrecondition; external tensors and number lists of
  /// Constant nodes can be read again.
  absl::StatusOr<HostTensor> Take(const std::string& name);

 private:
  struct Entry {
    onnx::TensorProto* initializer = nullptr;
    onnx::NodeProto* node = nullptr;  // a Constant
    bool taken = false;
  };
  absl::StatusOr<const Entry*> Find(const std::string& name) const;

  onnx::ModelProto model_;
  std::string directory_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, Entry> entries_;
};

}  // namespace fusion
