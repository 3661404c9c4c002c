#include "client/fallback/resilient_model.h"

#include <algorithm>
#include <random>
#include <system_error>

#include "core/base/threads/named_thread.h"
#include "core/onnx/model_io.h"
#include "core/onnx/reference_weights.h"
#include "core/onnx/weight_source.h"

namespace fusion {
namespace {

// As long as a service remembers, by default, that a kernel failed.
constexpr Nanoseconds kMostPause = std::chrono::minutes(10);

// The bytes of a model that several threads read.
class SharedWeights {
 public:
  SharedWeights(onnx::ModelProto model, const std::string& directory)
      : source_(std::move(model), directory) {}

  absl::StatusOr<HostTensor> Load(const std::string& name) const {
    MutexLock lock(&mutex_);
    return source_.Load(name);
  }
  absl::StatusOr<HostTensor> Take(const std::string& name) {
    MutexLock lock(&mutex_);
    return source_.Take(name);
  }

 private:
  mutable Mutex mutex_;
  WeightSource source_ ABSL_GUARDED_BY(mutex_);
};

// Errors that no service, cache or evaluator can resolve.
bool IsAboutTheModel(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsUnimplemented(status);
}

}  // namespace

std::string_view RunModeName(RunMode mode) {
  switch (mode) {
    case RunMode::kFusedFromService:
      return "fused (service)";
    case RunMode::kFusedFromCache:
      return "fused (cache)";
    case RunMode::kOpByOp:
      break;
  }
  return "op by op";
}

absl::StatusOr<std::unique_ptr<ResilientModel>> ResilientModel::Load(
    std::shared_ptr<ResilientClient> client, const std::string& path,
    const ResilientModelOptions& options) {
  ASSIGN_OR_RETURN(onnx::ModelProto model, LoadModel(path));
  return Load(std::move(client), std::move(model), ModelDirectory(path), options);
}

absl::StatusOr<std::unique_ptr<ResilientModel>> ResilientModel::Load(
    std::shared_ptr<ResilientClient> client, onnx::ModelProto model, const std::string& directory,
    const ResilientModelOptions& options) {
  ASSIGN_OR_RETURN(
      onnx::ModelProto bare,
      ReferenceWeights(model, {.directory = directory, .overridden = options.model.overridden}));
  FusionRequest request;
  request.onnx_model = bare.SerializeAsString();
  request.model_name = bare.graph().name();
  FusedModelOptions described = options.model;
  if (described.probe.directory.empty() && client != nullptr &&
      client->options().cache != nullptr) {
    described.probe.directory = client->options().cache->directory();
  }
  request.target = TargetOf(described);
  request.options = options.model.plan;
  request.allow_fused = options.model.allow_fused;
  request.traceparent = options.model.traceparent;
  auto weights = std::make_shared<SharedWeights>(std::move(model), directory);
  return Load(std::move(client), std::move(request), std::move(bare),
              {.load = [weights](const std::string& name) { return weights->Load(name); },
               .take = [weights](const std::string& name) { return weights->Take(name); }},
              options);
}

absl::StatusOr<std::unique_ptr<ResilientModel>> ResilientModel::Load(
    std::shared_ptr<ResilientClient> client, FusionRequest request, onnx::ModelProto bare,
    ModelWeights weights, const ResilientModelOptions& options) {
  if (weights.take == nullptr) weights.take = weights.load;
  std::unique_ptr<ResilientModel> out(
      new ResilientModel(std::move(client), std::move(request), options));
  RETURN_IF_ERROR(out->Begin(std::move(bare), std::move(weights)));
  return out;
}

ResilientModel::ResilientModel(std::shared_ptr<ResilientClient> client, FusionRequest request,
                               const ResilientModelOptions& options)
    : client_(std::move(client)), request_(std::move(request)), options_(options) {}

ResilientModel::~ResilientModel() {
  stop_.Stop();
  if (thread_.joinable()) thread_.join();
}

absl::Status ResilientModel::LoadFused(FetchedBundle fetched, const WeightReader& weights,
                                       Way* way) const {
  way->mode = fetched.from_cache ? RunMode::kFusedFromCache : RunMode::kFusedFromService;
  way->reason = std::string(Message(fetched.service));
  if (fetched.from_cache && fetched.service.ok()) way->reason = "what is cached is preferred";
  ASSIGN_OR_RETURN(
      way->fused,
      FusedModel::Load(std::move(fetched.bundle.reply), fetched.bundle.kernels, weights,
                       options_.model.executor, fetched.client.get(), options_.model.reports));
  return absl::OkStatus();
}

// `service`: its answer, OK if it was not asked. A preferred cached plan that cannot be loaded does
// not keep it from being asked, unless weights were `taken`: the error is then about them.
absl::Status ResilientModel::FetchFused(const WeightReader& weights, const bool& taken, Way* way,
                                        absl::Status* service) {
  const Nanoseconds begin = Clock::Real().Now();
  absl::StatusOr<FetchedBundle> fetched =
      client_->FetchBundle(request_, options_.load_deadline, &stop_);
  *service = fetched.ok() ? fetched->service : fetched.status();
  RETURN_IF_ERROR(fetched.status());
  const bool unasked = fetched->from_cache && service->ok();
  absl::Status loaded = LoadFused(*std::move(fetched), weights, way);
  if (loaded.ok() || !unasked || taken) return loaded;
  std::optional<Nanoseconds> left = options_.load_deadline;
  if (left.has_value()) *left -= Clock::Real().Now() - begin;
  fetched = client_->FetchFromService(request_, left, &stop_);
  *service = fetched.status();
  if (!service->ok()) return loaded;
  return LoadFused(*std::move(fetched), weights, way);
}

absl::Status ResilientModel::Begin(onnx::ModelProto bare, ModelWeights weights) {
  // Weights are read after the kernels are loaded; errors from then on occur in every mode.
  bool taken = false;
  auto take = [&](const std::string& name) {
    taken = true;
    return weights.take(name);
  };
  Way way;
  absl::Status service;
  absl::Status why = client_ == nullptr ? Unavailable("no client is given")
                                        : FetchFused(take, taken, &way, &service);
  if (taken) RETURN_IF_ERROR(why);
  if (!why.ok() && IsAboutTheModel(service)) return service;
  if (why.ok()) {
    inputs_ = way.fused->inputs();
    outputs_ = way.fused->outputs();
    const bool cached = way.mode == RunMode::kFusedFromCache;
    {
      MutexLock lock(&mutex_);
      way_ = std::move(way);
    }
    if (cached && options_.refresh_cache) StartThread(nullptr);
    return absl::OkStatus();
  }
  if (!options_.fall_back) return why;
  const OpByOpOptions options{.plan = request_.options,
                              .allow_fused = request_.allow_fused,
                              .threads = std::max(1, request_.target.threads)};
  ASSIGN_OR_RETURN(std::shared_ptr<const OpByOpModel> model,
                   OpByOpModel::Load(std::move(bare), weights.load, options));
  inputs_ = model->inputs();
  outputs_ = model->outputs();
  {
    MutexLock lock(&mutex_);
    way_ = {.mode = RunMode::kOpByOp,
            .reason = std::string(Message(why)),
            .fused = nullptr,
            .op_by_op = std::move(model)};
  }
  if (client_ == nullptr) return absl::OkStatus();
  client_->CountFallback();
  if (options_.upgrade) StartThread(std::move(weights.load));
  return absl::OkStatus();
}

void ResilientModel::StartThread(WeightReader weights) {
  if (client_->addresses().empty()) return;
  try {
    thread_ = NamedThread("fusion-retry", [this, weights = std::move(weights)]() mutable {
      Work(weights);
      weights = nullptr;  // the thread may be joined much later
    });
  } catch (const std::system_error&) {
    // The library has no other way to say that there are no more threads. The model runs as it is.
    return;
  }
}

void ResilientModel::Work(const WeightReader& weights) {
  std::minstd_rand random(std::random_device{}());
  std::uniform_real_distribution<double> longer(1, 1.5);
  const Nanoseconds every =
      std::max<Nanoseconds>(options_.upgrade_every, std::chrono::milliseconds(1));
  Nanoseconds pause = every;
  while (stop_.Wait(std::chrono::duration_cast<Nanoseconds>(pause * longer(random)))) {
    const Next next = TryUpgrade(weights);
    if (next == Next::kNone) return;
    pause = next == Next::kSoon ? every : std::min(2 * pause, std::max(every, kMostPause));
  }
}

// After a failed attempt: an unavailable or full service may be back at any moment. A failure there
// (Internal: a kernel, perhaps for lack of time on a busy machine) or here recurs for a while, and
// each attempt may cost compiling the kernel or packing the weights.
ResilientModel::Next ResilientModel::NextAfter(const absl::Status& service) {
  if (IsAboutTheModel(service)) return Next::kNone;
  return service.ok() || absl::IsInternal(service) ? Next::kLater : Next::kSoon;
}

// Without weights it only refreshes the cache.
ResilientModel::Next ResilientModel::TryUpgrade(const WeightReader& weights) {
  if (weights == nullptr) {
    const absl::Status service =
        client_->FetchFromService(request_, options_.load_deadline, &stop_).status();
    return service.ok() ? Next::kNone : NextAfter(service);
  }
  Way way;
  absl::Status service;
  absl::Status status = FetchFused(weights, /*taken=*/false, &way, &service);
  if (status.ok() && (way.fused->inputs() != inputs_ || way.fused->outputs() != outputs_)) {
    status = Internal("the plan names other inputs or outputs than the model");
  }
  MutexLock lock(&mutex_);
  if (!status.ok()) {
    if (!stop_.stopped()) way_.reason = std::string(Message(status));
    return NextAfter(service);
  }
  // A running call keeps the old mode.
  way_ = std::move(way);
  client_->CountUpgrade();
  return Next::kNone;
}

ResilientModel::Way ResilientModel::way() const {
  MutexLock lock(&mutex_);
  return way_;
}
RunMode ResilientModel::mode() const { return way().mode; }
std::string ResilientModel::reason() const { return way().reason; }
std::shared_ptr<const FusedModel> ResilientModel::fused() const { return way().fused; }

absl::StatusOr<std::vector<HostTensor>> ResilientModel::Run(
    const std::vector<HostTensor>& inputs) const {
  const Way now = way();
  return now.fused != nullptr ? now.fused->Run(inputs) : now.op_by_op->Run(inputs);
}

absl::StatusOr<std::vector<HostTensor>> ResilientModel::Run(
    const std::map<std::string, HostTensor>& inputs) const {
  const Way now = way();
  if (now.fused != nullptr) return now.fused->Run(inputs);
  std::vector<HostTensor> ordered;
  for (const std::string& name : inputs_) {
    auto it = inputs.find(name);
    if (it == inputs.end()) return InvalidArgument("input ", Quote(name), " is missing");
    ordered.push_back(it->second);
  }
  if (ordered.size() != inputs.size()) {
    return InvalidArgument(inputs.size(), " inputs given, the model has ", ordered.size());
  }
  return now.op_by_op->Run(ordered);
}

}  // namespace fusion
