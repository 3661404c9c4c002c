#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "client/fused_model.h"
#include "core/base/threads/mutex.h"

namespace fusion {

struct FamilyModelOptions {
  /// plan.dim_ranges lists the open dims and their likely values.
  FusedModelOptions model;
  /// If a plan's estimated loss against exact plans exceeds this part of its time, it is replaced
  /// by two plans, each for half the range of the symbol whose values differ most. At most
  /// `most_plans` plans are made, each with its own packed weights.
  double most_loss = 0.1;
  int most_plans = 3;
  /// Also make the exact plan of the likely values, in the background.
  bool exact_likely = true;
};

/// A model with open dims. A few plans serve all dims of its inputs.
///
///   FamilyModelOptions options;
///   options.model.plan.dim_ranges = {{"batch", {.least = 1, .most = 8}},
///                                    {"seq", {.least = 1, .most = 512, .likely = 128}}};
///   ASSIGN_OR_RETURN(auto model, FamilyModel::Load(*client, "bert.onnx", options));
///   ASSIGN_OR_RETURN(std::vector<HostTensor> outputs, model->Run({{"ids", ids}, {"mask", mask}}));
///
/// Nothing is compiled after loading, except the exact plan, which no run waits for: runs of the
/// likely dims use it once it is ready. Run may be called from several threads.
class FamilyModel {
 public:
  /// Loads the model and its external data; keeps them until the exact plan is ready.
  /// InvalidArgument without ranges; otherwise errors of FusedModel::Load.
  static absl::StatusOr<std::unique_ptr<FamilyModel>> Load(const Client& client,
                                                           const std::string& path,
                                                           const FamilyModelOptions& options);
  /// Waits for the exact plan if it is being made.
  ~FamilyModel();

  /// A plan and the values that it serves.
  struct Part {
    std::map<std::string, DimRange> ranges;
    std::map<std::string, int64_t> bound;  // symbols with a single value
    std::unique_ptr<FusedModel> model;
  };
  const std::vector<Part>& parts() const { return parts_; }

  const std::vector<std::string>& inputs() const { return parts_[0].model->inputs(); }
  const std::vector<std::string>& outputs() const { return parts_[0].model->outputs(); }

  /// InvalidArgument, naming input and dim, for dims that no plan serves.
  absl::StatusOr<std::vector<HostTensor>> Run(const std::map<std::string, HostTensor>& inputs,
                                              RunProfile* profile = nullptr) const;
  /// As FusedModel::Run with memory; all plans share it.
  absl::StatusOr<std::vector<HostTensor>> Run(const std::map<std::string, HostTensor>& inputs,
                                              SharedMemory* memory,
                                              RunProfile* profile = nullptr) const;
  /// As FusedModel::RunInPlace.
  absl::Status RunInPlace(const std::vector<BoundTensor>& inputs,
                          const std::vector<BoundTensor>& outputs,
                          RunProfile* profile = nullptr) const;
  /// As FusedModel::MakeMemory; the largest values are those of all ranges.
  absl::StatusOr<SharedMemory> MakeMemory(const std::map<std::string, int64_t>& dims = {}) const;
  /// The plan that a run with these inputs uses; `memory` as in Run.
  absl::StatusOr<const FusedModel*> ModelFor(const std::map<std::string, HostTensor>& inputs,
                                             const SharedMemory* memory = nullptr) const;

  /// The status of the exact plan of the likely values: nullopt while it is being made; NotFound if
  /// it was not requested.
  std::optional<absl::Status> exact() const;

 private:
  FamilyModel() = default;
  absl::StatusOr<const FusedModel*> ModelAt(const std::vector<Dims>& dims) const;
  void StartExact(const Client& client, std::shared_ptr<const onnx::ModelProto> model,
                  std::string directory, const FamilyModelOptions& options);

  std::vector<Part> parts_;
  std::map<std::string, DimRange> ranges_;  // of all parts together
  std::thread maker_;
  std::atomic<const FusedModel*> ready_{nullptr};  // exact_, once it is ready
  mutable Mutex mutex_;
  std::unique_ptr<FusedModel> exact_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> fared_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusion
