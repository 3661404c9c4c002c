#pragma once

#include <onnx/onnx_pb.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/client.h"
#include "client/reports/latency_reporter.h"
#include "client/probe/once.h"
#include "core/runtime/executor.h"

namespace fusion {

struct FusedModelOptions {
  /// The machine that runs the model; default: this one.
  std::optional<Target> target;
  /// Whether this machine may be measured once if its CPU has no device spec; only without
  /// `target`.
  ProbeConsent probe;
  PlanOptions plan;
  bool allow_fused = false;  // as in FusionRequest
  /// Initialisers that runs override. They must also be graph inputs (models of IR version 4 and
  /// later). They become inputs of this model, in the order of the graph, and every run passes
  /// them; the plan uses only their type. Other initialisers keep their values. InvalidArgument for
  /// a name that is no such initialiser.
  std::vector<std::string> overridden;
  std::string traceparent;  // as in FusionRequest
  /// Runs are timed for reports only; `sample_latencies` = false therefore disables reports.
  ExecutorOptions executor;
  /// Reports to the service, in the background.
  ReportOptions reports;
};

/// The machine for which a model with these options is planned; measures it if `probe` allows it
/// (AddMeasured).
Target TargetOf(const FusedModelOptions& options);

/// Reads a constant of a model by name; see WeightSource.
using WeightReader = std::function<absl::StatusOr<HostTensor>(const std::string& name)>;

/// A model that runs on the kernels of a plan.
///
///   ASSIGN_OR_RETURN(auto client, Client::Connect("localhost:50051"));
///   ASSIGN_OR_RETURN(auto model, FusedModel::Load(*client, "bert.onnx", {}));
///   ASSIGN_OR_RETURN(std::vector<HostTensor> outputs, model->Run({ids, mask}));
///
/// Owns weights, kernels, arenas and threads. Run may be called from several threads. Load fails as
/// the calls of Client and as Executor::Create and Prepare, or if the model cannot be read; the
/// forms of Run fail as those of Executor. Errors name node, weight, kernel or input.
///
/// Reports latencies to the service on a thread of its own (LatencyReporter): some runs are timed,
/// which costs less than 0.5 % of their time, and sent every 30 s and once at the end. Only the
/// destructor waits for a report, for at most 0.1 s; an unreachable service is no error. The
/// caller's client may be destroyed after loading: the model keeps the connection.
/// `FusedModelOptions::reports.enabled = false` disables reports.
class FusedModel {
 public:
  /// Loads the model and its external data, sends it without weights, fetches the kernels and packs
  /// the weights.
  static absl::StatusOr<std::unique_ptr<FusedModel>> Load(const Client& client,
                                                          const std::string& path,
                                                          const FusedModelOptions& options = {});
  /// `directory`: of the model's external data files.
  static absl::StatusOr<std::unique_ptr<FusedModel>> Load(const Client& client,
                                                          onnx::ModelProto model,
                                                          const std::string& directory,
                                                          const FusedModelOptions& options = {});
  /// For callers with their own request; calls `weights` once for each weight that the plan reads.
  /// Sends no reports by default.
  static absl::StatusOr<std::unique_ptr<FusedModel>> Load(
      const Client& client, const FusionRequest& request, const WeightReader& weights,
      const ExecutorOptions& options = {}, const ReportOptions& reports = {.enabled = false});

  /// From a plan and its kernels (in the order of the plan's kernels) from any source; contacts no
  /// service. `reports_to`: client for reports, null: none. DataLoss if a kernel does not match the
  /// plan. Calls `weights` only after the kernels are loaded.
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
  /// The same into the caller's tensors, for instance those of MakeOutputs. If runs decide extents
  /// of outputs (plan().output_extents), outputs keep their largest size, and tensors with the
  /// numbers of elements come after them: CutOutputs converts all of these to what Run returns.
  absl::Status RunInto(const std::vector<const HostTensor*>& inputs,
                       const std::vector<HostTensor*>& outputs,
                       RunProfile* profile = nullptr) const;
  absl::StatusOr<std::vector<HostTensor>> MakeOutputs() const { return executor_->MakeOutputs(); }
  /// Outputs for these inputs, if the plan has open dims (PlanOptions::dim_ranges); with `memory`
  /// those of RunShared.
  absl::StatusOr<std::vector<HostTensor>> MakeOutputs(const std::vector<const HostTensor*>& inputs,
                                                      const SharedMemory* memory = nullptr) const;

  /// For outputs that share memory with inputs (PlanOptions::shared_buffers), such as caches:
  /// MakeMemory allocates empty buffers, and each Run appends to them.
  ///
  ///   ASSIGN_OR_RETURN(SharedMemory caches, model->MakeMemory());
  ///   ASSIGN_OR_RETURN(auto outputs, model->Run({{"input_ids", ids}, {"mask", mask}}, &caches));
  ///
  /// `inputs` are the inputs without a shared buffer; shared outputs are returned empty. After an
  /// error `memory` is unchanged. Concurrent runs need separate memories. The forms of Run without
  /// `memory` copy such inputs and outputs. `dims`: values of open dims by name that size the
  /// buffers, default: the largest. InvalidArgument for a name or value that the plan does not
  /// have.
  absl::StatusOr<SharedMemory> MakeMemory(const std::map<std::string, int64_t>& dims = {}) const;
  absl::StatusOr<std::vector<HostTensor>> Run(const std::map<std::string, HostTensor>& inputs,
                                              SharedMemory* memory,
                                              RunProfile* profile = nullptr) const;
  /// The same into the caller's tensors; pointers to shared inputs and outputs may be null.
  absl::Status RunShared(const std::vector<const HostTensor*>& inputs,
                         const std::vector<HostTensor*>& outputs, SharedMemory* memory,
                         RunProfile* profile = nullptr) const;
  /// Runs on the caller's memory as it is, see Executor::RunInPlace. Its layout is
  /// PlanOptions::bound_strides, or dense. The other forms of Run take and return dense tensors,
  /// and copy those with strides.
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
  std::vector<HostTensor> weights_;  // by plan weight; empty if only its packed form is read
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<LatencyReporter> reporter_;  // null: none; uses executor_
};

}  // namespace fusion
