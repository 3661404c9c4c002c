#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "core/tensor/host_tensor.h"

namespace fusion {

/// The bytes of a model's constants by name: initialisers, and tensors of Constant nodes (by the
/// name of the node's output) of the main graph. What a client keeps when it sends the model
/// without them; the names are those a plan asks for.
///
///   WeightSource weights(std::move(model), ModelDirectory(path));
///   ASSIGN_OR_RETURN(HostTensor w, weights.Load("encoder.0.query.weight"));
///
/// Owns the model. External files are read when a tensor is asked for, never before. Not
/// thread-safe.
class WeightSource {
 public:
  /// `directory`: where external data files lie.
  explicit WeightSource(onnx::ModelProto model, std::string directory = ".");

  /// Names in the order of the model. Of equal names the last counts.
  const std::vector<std::string>& names() const { return names_; }

  /// A copy of the tensor. NotFound if there is no such constant; else as ReadTensor.
  absl::StatusOr<HostTensor> Load(const std::string& name) const;

  /// The same, and gives the model's own copy of the bytes up, so that a big tensor is held once.
  /// Taking an inline tensor again is FailedPrecondition; external ones are read again.
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
