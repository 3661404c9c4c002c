#pragma once

#include <onnx/onnx_pb.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/client.h"
#include "client/latency_reporter.h"
#include "core/runtime/executor.h"

namespace fusion {

struct FusedModelOptions {
  /// The machine that runs the model; by default this one.
  std::optional<Target> target;
  PlanOptions plan;
  bool allow_fused = false;  // as in FusionRequest
  /// Initialisers that runs override: those that are graph inputs too, of models of IR version 4
  /// and later. They are inputs of this model, after and between the others as the graph has them,
  /// and every run gives them; what the plan knows of them is their type. All others keep the
  /// values that the model has. InvalidArgument for a name that is no such initialiser.
  std::vector<std::string> overridden;
  std::string traceparent;  // likewise
  /// Runs are timed for reports only: `sample_latencies` = false means no reports, too.
  ExecutorOptions executor;
  /// What the service is told about runs, in the background.
  ReportOptions reports;
};

/// The bytes of a model's constant by its name; see WeightSource.
using WeightReader = std::function<absl::StatusOr<HostTensor>(const std::string& name)>;

/// A model that runs as the kernels of a plan.
///
///   ASSIGN_OR_RETURN(auto client, Client::Connect("localhost:50051"));
///   ASSIGN_OR_RETURN(auto model, FusedModel::Load(*client, "bert.onnx", {}));
///   ASSIGN_OR_RETURN(std::vector<HostTensor> outputs, model->Run({ids, mask}));
///
/// Owns weights, kernels, arenas and threads. Run may be called from several threads. Errors name
/// what failed: node, weight, kernel, input.
///
/// Tells the service how long runs took, on a thread of its own (LatencyReporter): some runs are
/// timed, at less than 0.5 % of their time, and sent every 30 s and once more at the end. Nothing
/// waits for it but the destructor, for 0.1 s at most; a service that is away is no error. The
/// caller's client may go after loading: the connection stays with the model.
/// `FusedModelOptions::reports.enabled = false` switches all that off.
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
  /// Reports nothing unless told to.
  static absl::StatusOr<std::unique_ptr<FusedModel>> Load(
      const Client& client, const FusionRequest& request, const WeightReader& weights,
      const ExecutorOptions& options = {}, const ReportOptions& reports = {.enabled = false});

  /// Of a plan and its kernels, by plan kernel, wherever they come from; asks nobody. `reports_to`:
  /// who is told about runs, null for nobody. DataLoss if a kernel is not the one that came with
  /// the plan. Nothing is asked of `weights` before the kernels are loaded.
  static absl::StatusOr<std::unique_ptr<FusedModel>> Load(FusionReply reply,
                                                          const std::vector<FetchedKernel>& kernels,
                                                          const WeightReader& weights,
                                                          const ExecutorOptions& options = {},
                                                          const Client* reports_to = nullptr,
                                                          const ReportOptions& reports = {});

  const FusionReply& reply() const { return reply_; }
  const Plan& plan() const { return reply_.plan; }
  /// Names, in the order in which Run takes and returns tensors.
  const std::vector<std::string>& inputs() const { return reply_.binding.inputs; }
  const std::vector<std::string>& outputs() const { return reply_.binding.outputs; }

  absl::StatusOr<std::vector<HostTensor>> Run(const std::vector<HostTensor>& inputs,
                                              RunProfile* profile = nullptr) const;
  absl::StatusOr<std::vector<HostTensor>> Run(const std::map<std::string, HostTensor>& inputs,
                                              RunProfile* profile = nullptr) const;
  /// The same into tensors of the caller's; MakeOutputs makes such. Where a run decides extents of
  /// outputs (plan().output_extents), they stay as large as they can get and the numbers of
  /// elements are behind them: CutOutputs makes what Run returns of them.
  absl::Status RunInto(const std::vector<const HostTensor*>& inputs,
                       const std::vector<HostTensor*>& outputs,
                       RunProfile* profile = nullptr) const;
  absl::StatusOr<std::vector<HostTensor>> MakeOutputs() const { return executor_->MakeOutputs(); }
  /// Those for these inputs, where the plan leaves dims open (PlanOptions::dim_ranges); with
  /// `memory` those of RunShared.
  absl::StatusOr<std::vector<HostTensor>> MakeOutputs(const std::vector<const HostTensor*>& inputs,
                                                      const SharedMemory* memory = nullptr) const;

  /// Where outputs lie in the memory of inputs (PlanOptions::shared_buffers): memory that holds
  /// nothing yet, and runs that go on where the last one stopped.
  ///
  ///   ASSIGN_OR_RETURN(SharedMemory caches, model->MakeMemory());
  ///   ASSIGN_OR_RETURN(auto outputs, model->Run({{"input_ids", ids}, {"mask", mask}}, &caches));
  ///
  /// `inputs` are the others; the outputs that share are empty. After an error `memory` holds what
  /// it held. Runs at once each have a memory of their own. The other forms of Run copy such inputs
  /// and outputs.
  /// Buffers have the other dims of the model's; where the plan leaves such open, `dims` says by
  /// name what they are, by default the largest. InvalidArgument for a name or value that is none
  /// of the plan's.
  absl::StatusOr<SharedMemory> MakeMemory(const std::map<std::string, int64_t>& dims = {}) const;
  absl::StatusOr<std::vector<HostTensor>> Run(const std::map<std::string, HostTensor>& inputs,
                                              SharedMemory* memory,
                                              RunProfile* profile = nullptr) const;
  /// The same into tensors of the caller's; places of inputs and outputs that share may be null.
  absl::Status RunShared(const std::vector<const HostTensor*>& inputs,
                         const std::vector<HostTensor*>& outputs, SharedMemory* memory,
                         RunProfile* profile = nullptr) const;
  /// On the caller's memory as it is, see Executor::RunInPlace: elements lie as
  /// PlanOptions::bound_strides says, or dense. The other forms of Run take and give dense tensors
  /// and copy what has strides.
  ///
  ///   BoundTensor image = {DType::kF32, &dims, bytes, size};  // with strides {1, 672, 3} of "x"
  ///   RETURN_IF_ERROR(model->RunInPlace({image}, {result}));
  absl::Status RunInPlace(const std::vector<BoundTensor>& inputs,
                          const std::vector<BoundTensor>& outputs,
                          RunProfile* profile = nullptr) const;

 private:
  explicit FusedModel(FusionReply reply) : reply_(std::move(reply)) {}
  absl::Status LoadKernels(const std::vector<FetchedKernel>& fetched,
                           const ExecutorOptions& options);
  absl::Status LoadWeights(const WeightReader& weights);
  void StartReports(const Client& client, const ReportOptions& options);
  absl::Status NameFault(const absl::Status& status) const;
  absl::StatusOr<std::vector<HostTensor>> RunNamed(const std::map<std::string, HostTensor>& inputs,
                                                   SharedMemory* memory, RunProfile* profile) const;
  absl::StatusOr<std::vector<const HostTensor*>> Ordered(
      const std::map<std::string, HostTensor>& inputs, const SharedMemory* memory) const;
  absl::Status CheckHeld(const std::vector<Dims>& dims) const;
  absl::Status CheckInputs(const std::vector<const HostTensor*>& inputs,
                           const SharedMemory* memory) const;

  FusionReply reply_;
  std::vector<HostTensor> weights_;  // by plan weight; empty where only prepared forms are read
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<LatencyReporter> reporter_;  // null: none; uses executor_
};

}  // namespace fusion
