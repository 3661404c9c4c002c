#pragma once

#include <onnx/onnx_pb.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "client/fallback/op_by_op_model.h"
#include "client/fused_model.h"
#include "client/resilient_client.h"

namespace fusion {

/// How a model runs, and the source of its plan.
enum class RunMode : uint8_t { kFusedFromService, kFusedFromCache, kOpByOp };
/// "fused (service)", "fused (cache)", "op by op".
std::string_view RunModeName(RunMode mode);

struct ResilientModelOptions {
  FusedModelOptions model;
  /// Deadline for the plan and its kernels; default: that of the client. Loading kernels and
  /// packing weights, or importing the model, are not limited.
  std::optional<Nanoseconds> load_deadline;
  /// If no plan is available: run op by op. If false, Load then fails with the reason, for runtimes
  /// with an alternative of their own.
  bool fall_back = true;
  /// A model that started op by op requests a plan in the background until it becomes fused.
  /// Only InvalidArgument and Unimplemented of the service, which are about the model, end that.
  bool upgrade = true;
  /// A model that started with a cached plan calls the service in the background until it answers,
  /// to refresh the cache for the next start; the same errors end that. The running plan stays.
  bool refresh_cache = true;
  /// Pause between two such attempts, extended by up to a half at random. Doubles, up to ten
  /// minutes, after each Internal of the service and each plan that cannot be loaded; other errors
  /// reset it.
  Nanoseconds upgrade_every = std::chrono::seconds(10);
};

/// Reads the constants of a model by name. Callable from several threads.
struct ModelWeights {
  /// Returns a copy.
  WeightReader load;
  /// As `load`, but may move the constant out instead of copying it. Called at most once for each
  /// constant; `load` is not called after it. Null: `load` is used.
  WeightReader take;
};

/// A model that loads and runs whether the service is available or not: fused by the service's
/// plan, by a cached plan, or op by op.
///
///   ASSIGN_OR_RETURN(auto client, ResilientClient::Create({"localhost:50051"}, {.cache = cache}));
///   ASSIGN_OR_RETURN(auto model, ResilientModel::Load(client, "bert.onnx"));
///   ASSIGN_OR_RETURN(std::vector<HostTensor> outputs, model->Run({ids, mask}));
///   log(RunModeName(model->mode()), model->reason());
///
/// Load fails only for errors of the model or the options (InvalidArgument, Unimplemented; NotFound
/// for a file), or for lack of memory; every other obstacle becomes a reason(). All modes give the
/// same outputs within the tolerance of PlanOptions::numerics. Run may be called from several
/// threads, also while a plan is being loaded; a run keeps the mode in which it started. A model
/// that becomes fused holds its weights twice during the change.
class ResilientModel {
 public:
  /// `client` null: always op by op.
  static absl::StatusOr<std::unique_ptr<ResilientModel>> Load(
      std::shared_ptr<ResilientClient> client, const std::string& path,
      const ResilientModelOptions& options = {});
  /// `directory`: of the model's external data files.
  static absl::StatusOr<std::unique_ptr<ResilientModel>> Load(
      std::shared_ptr<ResilientClient> client, onnx::ModelProto model, const std::string& directory,
      const ResilientModelOptions& options = {});
  /// For callers with their own request and weights; `bare` is the model of the request. Plan
  /// options and target come from the request.
  static absl::StatusOr<std::unique_ptr<ResilientModel>> Load(
      std::shared_ptr<ResilientClient> client, FusionRequest request, onnx::ModelProto bare,
      ModelWeights weights, const ResilientModelOptions& options = {});
  /// Cancels an attempt under way; waits for weights that are being packed.
  ~ResilientModel();
  ResilientModel(const ResilientModel&) = delete;
  ResilientModel& operator=(const ResilientModel&) = delete;

  /// Names, in the order in which Run takes and returns tensors, in every mode.
  const std::vector<std::string>& inputs() const { return inputs_; }
  const std::vector<std::string>& outputs() const { return outputs_; }

  absl::StatusOr<std::vector<HostTensor>> Run(const std::vector<HostTensor>& inputs) const;
  absl::StatusOr<std::vector<HostTensor>> Run(
      const std::map<std::string, HostTensor>& inputs) const;

  RunMode mode() const;
  /// Why the model does not run on a plan that the service just made; empty if it does.
  std::string reason() const;
  /// The fused model; null while it runs op by op.
  std::shared_ptr<const FusedModel> fused() const;

 private:
  struct Way {
    RunMode mode = RunMode::kOpByOp;
    std::string reason;
    std::shared_ptr<const FusedModel> fused;
    std::shared_ptr<const OpByOpModel> op_by_op;  // exactly one of the two
  };
  ResilientModel(std::shared_ptr<ResilientClient> client, FusionRequest request,
                 const ResilientModelOptions& options);
  absl::Status LoadFused(FetchedBundle fetched, const WeightReader& weights, Way* way) const;
  absl::Status FetchFused(const WeightReader& weights, const bool& taken, Way* way,
                          absl::Status* service);
  absl::Status Begin(onnx::ModelProto bare, ModelWeights weights);
  void StartThread(WeightReader weights);
  void Work(const WeightReader& weights);
  // What follows from one attempt for the next.
  enum class Next : uint8_t { kNone, kSoon, kLater };
  static Next NextAfter(const absl::Status& service);
  Next TryUpgrade(const WeightReader& weights);
  Way way() const;

  const std::shared_ptr<ResilientClient> client_;
  const FusionRequest request_;
  const ResilientModelOptions options_;
  std::vector<std::string> inputs_;
  std::vector<std::string> outputs_;
  mutable Mutex mutex_;
  Way way_ ABSL_GUARDED_BY(mutex_);
  CallStop stop_;
  std::thread thread_;  // not started if there is nothing to ask for
};

}  // namespace fusion
