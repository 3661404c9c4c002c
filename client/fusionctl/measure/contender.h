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

/// The model of a command under one plan, ready to run again and again into tensors of its own.
class Contender {
 public:
  /// Whether the file keeps the weights for others, or this is the last who wants them.
  enum class Weights { kLeft, kTaken };

  /// Plans, compiles, fetches, packs. `options`: of the plan, data bound.
  static absl::StatusOr<Contender> Load(const Arguments& arguments, const ModelFile& file,
                                        const Client& client, const PlanOptions& options,
                                        Progress* progress, Weights weights = Weights::kLeft);

  /// One run; its time is kept if `counts`.
  absl::Status Run(const std::vector<const HostTensor*>& inputs, bool counts);
  /// One run whose launches are timed apart, which costs a little itself.
  absl::Status Profile(const std::vector<const HostTensor*>& inputs);

  const FusedModel& model() const { return *model_; }
  const Plan& plan() const { return model_->plan(); }
  /// That, or its variant for these inputs; known once something ran.
  const Plan& ran() const { return VariantOf(plan(), variant_); }
  /// Position of the variant; -1: the plan itself.
  int variant() const { return variant_; }
  /// What the service answered when it was asked for the plan.
  const FusionReply& reply() const { return reply_; }
  /// Of the last run; none before the first.
  const std::vector<HostTensor>& outputs() const {
    return plan().output_extents.empty() ? outputs_ : cut_;
  }
  /// Of each run that counts, in microseconds.
  const std::vector<double>& latency_us() const { return latency_us_; }
  /// By launch of ran(): of each profiled run, in microseconds.
  const std::vector<std::vector<double>>& launch_us() const { return launch_us_; }

 private:
  absl::Status MakeOutputs(const std::vector<const HostTensor*>& inputs);
  void FetchOutputs();
  absl::Status Place(const std::vector<const HostTensor*>& inputs);
  absl::Status RunOnce(const std::vector<const HostTensor*>& inputs, RunProfile* profile);

  FusionReply reply_;
  int variant_ = -1;  // that runs
  std::unique_ptr<FusedModel> model_;
  std::vector<HostTensor> outputs_;
  std::vector<HostTensor*> out_;     // into outputs_
  SharedMemory memory_;              // of what shares buffers
  std::vector<HostTensor> strided_;  // by Plan::bound_strides
  std::vector<BoundTensor> placed_in_;
  std::vector<BoundTensor> placed_out_;
  std::vector<int64_t> start_;   // SharedMemory::rows before each run
  std::vector<HostTensor> cut_;  // outputs_ with the extents that the run decided
  std::vector<double> latency_us_;
  std::vector<std::vector<double>> launch_us_;
};

/// What a command runs on: the first set of --data, or random inputs.
struct RunInputs {
  RunData data;
  PlanOptions options;  // of the arguments, with open dims bound to the data
  /// In the order of a run.
  std::vector<const HostTensor*> pointers() const;
};
absl::StatusOr<RunInputs> LoadRunInputs(const Arguments& arguments, const ModelFile& file);

/// Samples as --json has them: median with its interval, p10, p90, n.
nlohmann::ordered_json LatencyJson(const std::vector<double>& samples_us);

}  // namespace fusion
