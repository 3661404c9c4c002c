#pragma once

#include <onnx/onnx_pb.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/client.h"
#include "core/runtime/executor.h"

namespace fusion {

struct FusedModelOptions {
  /// The machine that runs the model; by default this one.
  std::optional<Target> target;
  PlanOptions plan;
  ExecutorOptions executor;
};

/// The bytes of a model's constant by its name; see WeightSource.
using WeightReader = std::function<absl::StatusOr<HostTensor>(const std::string& name)>;

/// A model that runs as the kernels of a plan.
///
///   ASSIGN_OR_RETURN(auto client, Client::Connect("localhost:50051"));
///   ASSIGN_OR_RETURN(auto model, FusedModel::Load(*client, "bert.onnx", {}));
///   ASSIGN_OR_RETURN(std::vector<HostTensor> outputs, model->Run({ids, mask}));
///
/// Owns weights, kernels, arenas and threads; the client is needed for loading only. Run may be
/// called from several threads. Errors name what failed: node, weight, kernel, input.
class FusedModel {
 public:
  /// Loads the model and its external data, sends it without weights, fetches the kernels, packs
  /// the weights.
  static absl::StatusOr<std::unique_ptr<FusedModel>> Load(const Client& client,
                                                          const std::string& path,
                                                          const FusedModelOptions& options = {});
  /// `directory`: where external data files lie.
  static absl::StatusOr<std::unique_ptr<FusedModel>> Load(const Client& client,
                                                          onnx::ModelProto model,
                                                          const std::string& directory,
                                                          const FusedModelOptions& options = {});
  /// For callers with a request of their own; asks `weights` once for each weight the plan reads.
  static absl::StatusOr<std::unique_ptr<FusedModel>> Load(const Client& client,
                                                          const FusionRequest& request,
                                                          const WeightReader& weights,
                                                          const ExecutorOptions& options = {});

  const FusionReply& reply() const { return reply_; }
  const Plan& plan() const { return reply_.plan; }
  /// Names, in the order in which Run takes and returns tensors.
  const std::vector<std::string>& inputs() const { return reply_.binding.inputs; }
  const std::vector<std::string>& outputs() const { return reply_.binding.outputs; }

  absl::StatusOr<std::vector<HostTensor>> Run(const std::vector<HostTensor>& inputs,
                                              RunProfile* profile = nullptr) const;
  absl::StatusOr<std::vector<HostTensor>> Run(const std::map<std::string, HostTensor>& inputs,
                                              RunProfile* profile = nullptr) const;
  /// The same into tensors of the caller's; MakeOutputs makes such.
  absl::Status RunInto(const std::vector<const HostTensor*>& inputs,
                       const std::vector<HostTensor*>& outputs,
                       RunProfile* profile = nullptr) const;
  absl::StatusOr<std::vector<HostTensor>> MakeOutputs() const { return executor_->MakeOutputs(); }

 private:
  explicit FusedModel(FusionReply reply) : reply_(std::move(reply)) {}
  absl::Status LoadKernels(const Client& client, const ExecutorOptions& options);
  absl::Status LoadWeights(const WeightReader& weights);
  absl::Status CheckInputs(const std::vector<const HostTensor*>& inputs) const;

  FusionReply reply_;
  std::vector<HostTensor> weights_;  // by plan weight; empty where only prepared forms are read
  std::unique_ptr<Executor> executor_;
};

}  // namespace fusion
