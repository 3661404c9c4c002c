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

/// How a model runs, and where its plan is from.
enum class RunMode : uint8_t { kFusedFromService, kFusedFromCache, kOpByOp };
/// "fused (service)", "fused (cache)", "op by op".
std::string_view RunModeName(RunMode mode);

struct ResilientModelOptions {
  FusedModelOptions model;
  /// For the plan and its kernels; default: that of the client. What follows takes what it takes:
  /// loading kernels and packing weights, or importing the model.
  std::optional<Nanoseconds> load_deadline;
  /// Whether a model without a plan runs op by op; else Load gives the reason as its error, for
  /// runtimes that have a way of their own.
  bool fall_back = true;
  /// Whether a model that began op by op asks on in the background, and becomes fused. Of the
  /// service's errors only InvalidArgument and Unimplemented, which are about the model, end that.
  bool upgrade = true;
  /// Whether one that began with a cached plan has the service asked in the background, until it
  /// answers, for the next start; the same errors end that. The plan that runs stays.
  bool refresh_cache = true;
  /// Between two such tries, longer by up to a half at random. Doubles, to ten minutes at most,
  /// with each Internal of the service and each plan that cannot be loaded; other errors set it
  /// back.
  Nanoseconds upgrade_every = std::chrono::seconds(10);
};

/// The constants of a model by name, for several threads.
struct ModelWeights {
  /// A copy.
  WeightReader load;
  /// The same for the last who wants any: need not work twice. Null: `load`.
  WeightReader take;
};

/// A model that loads and runs whether the service is there or not: fused by its plan, by the plan
/// of an earlier start, or op by op.
///
///   ASSIGN_OR_RETURN(auto client, ResilientClient::Create({"localhost:50051"}, {.cache = cache}));
///   ASSIGN_OR_RETURN(auto model, ResilientModel::Load(client, "bert.onnx"));
///   ASSIGN_OR_RETURN(std::vector<HostTensor> outputs, model->Run({ids, mask}));
///   log(RunModeName(model->mode()), model->reason());
///
/// Load fails only for what is wrong with the model or the options (InvalidArgument, Unimplemented;
/// NotFound for a file), or for lack of memory: everything else that stands between it and a plan
/// is a reason(). All modes give the same outputs within the tolerance of PlanOptions::numerics.
/// Run may be called from several threads, also while a plan comes in; a run ends as it began. One
/// that becomes fused holds its weights twice meanwhile.
class ResilientModel {
 public:
  /// `client` null: op by op.
  static absl::StatusOr<std::unique_ptr<ResilientModel>> Load(
      std::shared_ptr<ResilientClient> client, const std::string& path,
      const ResilientModelOptions& options = {});
  /// `directory`: where external data files lie.
  static absl::StatusOr<std::unique_ptr<ResilientModel>> Load(
      std::shared_ptr<ResilientClient> client, onnx::ModelProto model, const std::string& directory,
      const ResilientModelOptions& options = {});
  /// For callers with a request and weights of their own; `bare` is the model of the request.
  /// Options of the plan and the target are those of the request.
  static absl::StatusOr<std::unique_ptr<ResilientModel>> Load(
      std::shared_ptr<ResilientClient> client, FusionRequest request, onnx::ModelProto bare,
      ModelWeights weights, const ResilientModelOptions& options = {});
  /// Ends a try that is under way; waits for weights that are being packed.
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
  /// Why it is not fused by a plan that the service just gave; empty if it is.
  std::string reason() const;
  /// What runs; null while it runs op by op.
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
  // What a try says of the next one.
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
  std::thread thread_;  // none: nothing gets better
};

}  // namespace fusion
