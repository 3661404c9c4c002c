#pragma once

#include <onnx/onnx_pb.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "client/client.h"
#include "client/fusionctl/args/arguments.h"
#include "core/onnx/weight_source.h"

namespace fusion {

/// A request with these arguments, without a model.
FusionRequest RequestFor(const Arguments& arguments, const PlanOptions& options);

/// The model of a command: its request and its weights. Errors are bad input, or ResourceExhausted
/// (no memory).
class ModelFile {
 public:
  /// Reads a model file. Inputs of --fix become constants; initialisers that --as-input, --input or
  /// --data name become inputs. --allow-fused is passed on to the service.
  static absl::StatusOr<std::unique_ptr<ModelFile>> Load(const std::string& path,
                                                         const Arguments& arguments);
  /// The same for a model in memory, which contains its weights. `name`: for display.
  static absl::StatusOr<std::unique_ptr<ModelFile>> Make(onnx::ModelProto model,
                                                         const std::string& name,
                                                         const Arguments& arguments);

  /// The model as it is sent: without weights.
  const onnx::ModelProto& bare() const { return bare_; }
  /// The graph inputs that a run must give.
  const std::vector<const onnx::ValueInfoProto*>& inputs() const { return inputs_; }
  /// Whether one of inputs() is an initialiser of the file, which has a default value.
  bool IsOverridden(const std::string& input) const { return overridden_.contains(input); }
  /// Initialisers that could be overridden and are not; for messages.
  std::vector<std::string> overridable() const;
  /// The inputs for which a data set may have tensors, in the order of the file: inputs() and those
  /// of --fix.
  const std::vector<const onnx::ValueInfoProto*>& data_inputs() const { return data_inputs_; }
  /// Whether --fix made the input a constant.
  bool IsFixed(const std::string& input) const { return fixed_.contains(input); }
  bool allow_fused() const { return allow_fused_; }

  /// A request for this model with these arguments.
  FusionRequest Request(const Arguments& arguments, const PlanOptions& options) const;

  /// The value of a weight. A model that was stored without its weights gets random ones, which
  /// depend on the name only. Errors name tensor and file. Internal after any call of TakeWeight.
  absl::StatusOr<HostTensor> Weight(const std::string& name) const;
  /// The same, and frees this object's copy of the weight. Weight then fails for every name.
  absl::StatusOr<HostTensor> TakeWeight(const std::string& name) const;
  /// Whether a weight was missing and replaced by a random one.
  bool made_up_weights() const { return made_up_; }

 private:
  ModelFile() = default;
  // `directory`: that of external weights.
  static absl::StatusOr<std::unique_ptr<ModelFile>> MakeFrom(onnx::ModelProto model,
                                                             const std::string& name,
                                                             const std::string& directory,
                                                             const Arguments& arguments);
  onnx::ModelProto bare_;
  absl::StatusOr<HostTensor> OrMadeUp(const std::string& name,
                                      absl::StatusOr<HostTensor> bytes) const;

  std::unique_ptr<WeightSource> source_;
  std::vector<const onnx::ValueInfoProto*> inputs_;       // into bare_
  std::vector<const onnx::ValueInfoProto*> data_inputs_;  // likewise
  std::set<std::string> overridden_, fixed_;
  std::string bytes_;  // of bare_
  bool allow_fused_ = false;
  std::string name_;                 // for display
  std::vector<SharedNames> shared_;  // --share with wildcards expanded
  mutable bool made_up_ = false;
  mutable bool taken_ = false;  // some weight
};

}  // namespace fusion
