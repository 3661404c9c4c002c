#pragma once

#include <onnx/onnx_pb.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/fused_model.h"
#include "core/base/threads/mutex.h"
#include "core/bundle/options.h"
#include "core/custom/custom_ops.h"
#include "core/graph/graph.h"

namespace fusion {

struct OpByOpOptions {
  PlanOptions plan;  // dims (bindings, ranges, batch), outputs to keep, custom ops
  bool allow_fused = false;
  int threads = 1;
};

/// A model that runs node by node on the reference evaluator: without service, compiler or kernels.
/// Exact and slow; for runtimes without another way to run it.
///
///   ASSIGN_OR_RETURN(auto model, OpByOpModel::Load(bare, weights, options));
///   ASSIGN_OR_RETURN(std::vector<HostTensor> outputs, model->Run(inputs));
///
/// Run may be called from several threads. Open dims take their values from the inputs of each run;
/// the graph of the latest values is cached.
class OpByOpModel {
 public:
  /// `bare`: the model without weights (ReferenceWeights). `weights` is called once for each
  /// weight, at its first use, by one run at a time. InvalidArgument, Unimplemented: as ImportOnnx.
  static absl::StatusOr<std::unique_ptr<OpByOpModel>> Load(onnx::ModelProto bare,
                                                           WeightReader weights,
                                                           const OpByOpOptions& options = {});

  /// Names, in the order in which Run takes and returns tensors.
  const std::vector<std::string>& inputs() const { return inputs_; }
  const std::vector<std::string>& outputs() const { return outputs_; }

  /// InvalidArgument, naming the input, if one does not fit the model. Else fails as Evaluate, as
  /// ImportOnnx for new values of open dims, or with the error of `weights`.
  absl::StatusOr<std::vector<HostTensor>> Run(const std::vector<HostTensor>& inputs) const;

 private:
  OpByOpModel() = default;
  absl::StatusOr<std::shared_ptr<const Graph>> GraphFor(
      const std::vector<HostTensor>& inputs) const;
  absl::StatusOr<Graph> Import(const std::map<std::string, int64_t>& dims) const;
  absl::StatusOr<const HostTensor*> Weight(const std::string& name) const;

  onnx::ModelProto bare_;
  WeightReader weights_;
  OpByOpOptions options_;
  CustomOps custom_ops_;
  std::vector<const onnx::ValueInfoProto*> declared_;  // by input, in bare_
  std::vector<std::string> inputs_;
  std::vector<std::string> outputs_;
  mutable Mutex mutex_;
  mutable std::map<std::string, int64_t> dims_ ABSL_GUARDED_BY(mutex_);  // of graph_
  mutable std::shared_ptr<const Graph> graph_ ABSL_GUARDED_BY(mutex_);
  // Entries are never removed, so that addresses stay valid.
  mutable std::map<std::string, HostTensor> held_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusion
