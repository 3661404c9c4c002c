#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "client/fused_model.h"
#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/input/data.h"
#include "client/fusionctl/input/model_file.h"
#include "client/fusionctl/output/terminal.h"
#include "core/bundle/plan_variants.h"

namespace fusion {

/// The model of a command loaded under one plan, to run repeatedly into its own output tensors.
/// Pass the same inputs to all runs, and keep them alive: shared buffers, and with
/// Plan::bound_strides all inputs, have the values of the first run. Not thread-safe.
class Contender {
 public:
  /// kLeft: `file` keeps the weights for further plans. kTaken: they are moved out of it.
  enum class Weights { kLeft, kTaken };

  /// Plans, compiles, fetches the kernels and packs the weights. `options`: those of the plan, with
  /// dims bound to the data (BindToData). Fails as PlanWithProgress, FusedModel::Load and
  /// ModelFile::Weight do.
  static absl::StatusOr<Contender> Load(const Arguments& arguments, const ModelFile& file,
                                        const Client& client, const PlanOptions& options,
                                        Progress* progress, Weights weights = Weights::kLeft);

  /// One run; adds its time to latency_us() if `counts`. Fails as FusedModel::RunInto does.
  absl::Status Run(const std::vector<const HostTensor*>& inputs, bool counts);
  /// One run that times every launch, which adds a small overhead.
  absl::Status Profile(const std::vector<const HostTensor*>& inputs);

  const FusedModel& model() const { return *model_; }
  const Plan& plan() const { return model_->plan(); }
  /// plan(), or its variant for these inputs; valid after the first run.
  const Plan& ran() const { return VariantOf(plan(), variant_); }
  /// Index of the variant; -1: the plan itself.
  int variant() const { return variant_; }
  /// The service's reply with the plan.
  const FusionReply& reply() const { return reply_; }
  /// Outputs of the last Run; empty before the first.
  const std::vector<HostTensor>& outputs() const {
    return plan().output_extents.empty() ? outputs_ : cut_;
  }
  /// Microseconds of each run that counts.
  const std::vector<double>& latency_us() const { return latency_us_; }
  /// For each launch of ran(), the microseconds in each call of Profile; empty before the first.
  const std::vector<std::vector<double>>& launch_us() const { return launch_us_; }

 private:
  absl::Status MakeOutputs(const std::vector<const HostTensor*>& inputs);
  void FetchOutputs();
  absl::Status Place(const std::vector<const HostTensor*>& inputs);
  absl::Status RunOnce(const std::vector<const HostTensor*>& inputs, RunProfile* profile);

  FusionReply reply_;
  int variant_ = -1;
  std::unique_ptr<FusedModel> model_;
  std::vector<HostTensor> outputs_;
  std::vector<HostTensor*> out_;     // into outputs_
  SharedMemory memory_;              // of shared buffers
  std::vector<HostTensor> strided_;  // one for each of Plan::bound_strides
  std::vector<BoundTensor> placed_in_;
  std::vector<BoundTensor> placed_out_;
  std::vector<int64_t> start_;   // SharedMemory::rows before each run
  std::vector<HostTensor> cut_;  // outputs_ cut to the extents that the run determined
  std::vector<double> latency_us_;
  std::vector<std::vector<double>> launch_us_;
};

/// The inputs of a command: the first set of --data, or random inputs; --input replaces single
/// ones.
struct RunInputs {
  RunData data;
  PlanOptions options;  // those of the arguments, with open dims bound to the data
  /// Pointers into data.inputs, for Contender::Run.
  std::vector<const HostTensor*> pointers() const;
};
/// Fails as LoadData, LoadInputs, ImportModel and RandomData do.
absl::StatusOr<RunInputs> LoadRunInputs(const Arguments& arguments, const ModelFile& file);

/// For --json: median with its interval, p10, p90 and number of samples.
nlohmann::ordered_json LatencyJson(const std::vector<double>& samples_us);

}  // namespace fusion
