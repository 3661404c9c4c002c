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

/// A request as the arguments ask, without a model.
FusionRequest RequestFor(const Arguments& arguments, const PlanOptions& options);

/// The model of a command: as a request, and as weights. Errors are bad input.
class ModelFile {
 public:
  /// With the inputs of --fix as constants, and with initialisers as inputs that --as-input,
  /// --input or --data name; fused ones only with --allow-fused.
  static absl::StatusOr<std::unique_ptr<ModelFile>> Load(const std::string& path,
                                                         const Arguments& arguments);
  /// The same of a model with its weights in it, which people know as `name`.
  static absl::StatusOr<std::unique_ptr<ModelFile>> Make(onnx::ModelProto model,
                                                         const std::string& name,
                                                         const Arguments& arguments);

  /// As it is sent: without weights.
  const onnx::ModelProto& bare() const { return bare_; }
  /// The graph inputs that a run must give.
  const std::vector<const onnx::ValueInfoProto*>& inputs() const { return inputs_; }
  /// Which of inputs() are initialisers of the file: those have a value without being given one.
  bool IsOverridden(const std::string& input) const { return overridden_.contains(input); }
  /// Initialisers that could be inputs and are none, for messages.
  std::vector<std::string> overridable() const;
  /// What a data set may have tensors for, in the order of the file: inputs(), and those of --fix.
  const std::vector<const onnx::ValueInfoProto*>& data_inputs() const { return data_inputs_; }
  /// Whether --fix gave an input its value.
  bool IsFixed(const std::string& input) const { return fixed_.contains(input); }
  bool allow_fused() const { return allow_fused_; }

  /// A request for it as the arguments ask.
  FusionRequest Request(const Arguments& arguments, const PlanOptions& options) const;

  /// The bytes of a weight. A model that was stored without its weights gets random ones, which
  /// depend on the name alone. Errors name tensor and file; they are bad input, or there is no
  /// memory.
  absl::StatusOr<HostTensor> Weight(const std::string& name) const;
  /// The same for the last who wants it: the file's own copy goes, so that it is held once.
  absl::StatusOr<HostTensor> TakeWeight(const std::string& name) const;
  /// True once Weight had to make one up.
  bool made_up_weights() const { return made_up_; }

 private:
  ModelFile() = default;
  // `directory`: where external weights lie.
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
  std::string name_;                 // for people
  std::vector<SharedNames> shared_;  // of --share, without *
  mutable bool made_up_ = false;
  mutable bool taken_ = false;  // some weight
};

}  // namespace fusion
