#include "client/fused_model.h"

#include <set>

#include "client/detect_target.h"
#include "core/bundle/plan_variants.h"
#include "core/bundle/symbol_values.h"
#include "core/onnx/model_io.h"
#include "core/onnx/reference_weights.h"
#include "core/onnx/weight_source.h"

namespace fusion {
namespace {

// Positions of the weights that some runs read as they are.
std::set<int> WeightsReadByRuns(const Plan& plan) {
  std::set<int> out;
  for (const PlanVariant& variant : plan.variants) out.merge(WeightsReadByRuns(*variant.plan));
  for (int t : TensorsOfRuns(plan)) {
    const PlanTensor& tensor = plan.tensors[static_cast<size_t>(t)];
    if (tensor.space == Space::kWeight) out.insert(tensor.index);
  }
  return out;
}

absl::Status CheckType(const HostTensor& given, const PlanTensor& wanted, std::string_view what,
                       const std::string& name) {
  if (given.dtype() == wanted.dtype && given.dims() == wanted.dims) return absl::OkStatus();
  return InvalidArgument(what, " ", Quote(name), " is ", DTypeName(given.dtype()),
                         DimsToString(given.dims()), ", expected ", DTypeName(wanted.dtype),
                         DimsToString(wanted.dims));
}

}  // namespace

Target TargetOf(const FusedModelOptions& options) {
  if (options.target) return *options.target;
  Target target = DetectTarget(options.executor.threads);
  AddMeasured(options.probe, &target);
  return target;
}

absl::StatusOr<std::unique_ptr<FusedModel>> FusedModel::Load(const Client& client,
                                                             const std::string& path,
                                                             const FusedModelOptions& options) {
  ASSIGN_OR_RETURN(onnx::ModelProto model, LoadModel(path));
  return Load(client, std::move(model), ModelDirectory(path), options);
}

absl::StatusOr<std::unique_ptr<FusedModel>> FusedModel::Load(const Client& client,
                                                             onnx::ModelProto model,
                                                             const std::string& directory,
                                                             const FusedModelOptions& options) {
  ASSIGN_OR_RETURN(
      onnx::ModelProto bare,
      ReferenceWeights(model, {.directory = directory, .overridden = options.overridden}));
  FusionRequest request;
  request.onnx_model = bare.SerializeAsString();
  request.model_name = bare.graph().name();
  request.target = TargetOf(options);
  request.options = options.plan;
  request.allow_fused = options.allow_fused;
  request.traceparent = options.traceparent;
  WeightSource source(std::move(model), directory);
  return Load(
      client, request, [&source](const std::string& name) { return source.Take(name); },
      options.executor, options.reports);
}

absl::StatusOr<std::unique_ptr<FusedModel>> FusedModel::Load(const Client& client,
                                                             const FusionRequest& request,
                                                             const WeightReader& weights,
                                                             const ExecutorOptions& options,
                                                             const ReportOptions& reports) {
  const std::unique_ptr<Client> traced = client.Traced(request.traceparent);
  ASSIGN_OR_RETURN(FusionReply reply, traced->PlanFusion(request));
  std::vector<Digest> keys;
  for (const KernelStatus& kernel : reply.kernels) keys.push_back(kernel.key);
  absl::StatusOr<std::vector<FetchedKernel>> kernels = traced->GetKernels(keys);
  // The plan is new, so its kernels were evicted since; a retry makes them again.
  if (absl::IsNotFound(kernels.status())) return Unavailable(Message(kernels.status()));
  RETURN_IF_ERROR(kernels.status());
  return Load(std::move(reply), *kernels, weights, options, &client, reports);
}

absl::StatusOr<std::unique_ptr<FusedModel>> FusedModel::Load(
    FusionReply reply, const std::vector<FetchedKernel>& kernels, const WeightReader& weights,
    const ExecutorOptions& options, const Client* reports_to, const ReportOptions& reports) {
  std::unique_ptr<FusedModel> model(new FusedModel(std::move(reply)));
  ExecutorOptions executor = options;
  executor.sample_latencies &= reports.enabled && reports_to != nullptr;
  RETURN_IF_ERROR(model->LoadKernels(kernels, executor));
  RETURN_IF_ERROR(model->LoadWeights(weights));
  if (executor.sample_latencies) model->StartReports(*reports_to, reports);
  return model;
}

void FusedModel::StartReports(const Client& client, const ReportOptions& options) {
  LatencyReport header{.plan_key = reply_.plan_key,
                       .kernels = LaunchedKernels(plan()),
                       .threads = executor_->threads(),
                       .device = DeviceName()};
  Executor* executor = executor_.get();
  std::shared_ptr<const Client> own = client.Share();
  reporter_ = std::make_unique<LatencyReporter>(
      std::move(header),
      LatencyReporter::Callbacks{.take = [executor] { return executor->TakeSamples(); },
                                 .send =
                                     [own](const LatencyReport& report, const ReportOrigin& origin,
                                           const CancelToken& until) {
                                       return own->ReportLatency(report, until, origin).status();
                                     },
                                 .stopped = [executor] { executor->StopSampling(); }},
      options);
}

absl::Status FusedModel::LoadKernels(const std::vector<FetchedKernel>& fetched,
                                     const ExecutorOptions& options) {
  if (fetched.size() != plan().kernels.size() || reply_.kernels.size() != fetched.size()) {
    return InvalidArgument(fetched.size(), " kernels given, the plan has ", plan().kernels.size());
  }
  std::vector<std::shared_ptr<const LoadedKernel>> loaded;
  for (size_t i = 0; i < fetched.size(); ++i) {
    const PlanKernel& kernel = plan().kernels[i];
    const KernelStatus& announced = reply_.kernels[i];
    if (announced.state == KernelState::kReady && announced.content != fetched[i].content) {
      return DataLoss("kernel ", kernel.symbol, " (", kernel.label, ") has the SHA-256 ",
                      fetched[i].content.ToHex(), ", the plan came with ",
                      announced.content.ToHex());
    }
    absl::StatusOr<std::shared_ptr<const LoadedKernel>> ready =
        LoadKernel(kernel.backend, fetched[i].binary, kernel.symbol);
    if (!ready.ok()) return Annotate(ready.status(), StrCat("loading ", kernel.label));
    loaded.push_back(*std::move(ready));
  }
  ASSIGN_OR_RETURN(executor_, Executor::Create(plan(), std::move(loaded), options));
  return absl::OkStatus();
}

absl::Status FusedModel::LoadWeights(const WeightReader& weights) {
  weights_.resize(plan().weights.size());
  RETURN_IF_ERROR(executor_->Prepare([&](int i) -> absl::StatusOr<const HostTensor*> {
    auto at = static_cast<size_t>(i);
    const std::string& name = reply_.binding.weights[at];
    ASSIGN_OR_RETURN(weights_[at], weights(name));
    const PlanTensor& wanted = plan().tensors[static_cast<size_t>(plan().weights[at])];
    RETURN_IF_ERROR(CheckType(weights_[at], wanted, "weight", name));
    return &weights_[at];
  }));
  std::set<int> read = WeightsReadByRuns(plan());
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (!read.contains(static_cast<int>(i))) weights_[i] = HostTensor();
  }
  return absl::OkStatus();
}

absl::StatusOr<SharedMemory> FusedModel::MakeMemory(
    const std::map<std::string, int64_t>& dims) const {
  const std::vector<std::string>& names = reply_.binding.symbols;
  std::vector<int64_t> units = MostUnits(plan().symbols);
  for (const auto& [name, value] : dims) {
    const auto at =
        static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    if (at == names.size()) {
      return InvalidArgument("the plan leaves no dim ", QuoteShort(name), " open");
    }
    const DimRange& range = plan().symbols[at];
    if (value < range.least || value > range.most || value % range.multiple != 0) {
      return InvalidArgument("dim ", QuoteShort(name), " is ", value, ", the plan is for ",
                             range.least, "..", range.most, " in multiples of ", range.multiple);
    }
    units[at] = value / range.multiple;
  }
  return MakeSharedMemory(plan(), units);
}

absl::Status FusedModel::CheckInputs(const std::vector<const HostTensor*>& given,
                                     const SharedMemory* memory) const {
  if (given.size() != inputs().size()) {
    return InvalidArgument(given.size(), " inputs given, the model has ", inputs().size());
  }
  for (size_t i = 0; i < given.size(); ++i) {
    int id = plan().inputs[i];
    if (id < 0) continue;  // nothing reads it
    if (memory != nullptr && IsSharedInput(plan(), i)) continue;
    if (given[i] == nullptr) return InvalidArgument("input ", Quote(inputs()[i]), " is missing");
    const PlanTensor& wanted = plan().tensors[static_cast<size_t>(id)];
    const bool open = !wanted.sizes.empty() && given[i]->dtype() == wanted.dtype;
    if (!open) RETURN_IF_ERROR(CheckType(*given[i], wanted, "input", inputs()[i]));
  }
  if (plan().symbols.empty() && memory == nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::vector<Dims> dims, InputDims(plan(), given, memory));
  if (plan().symbols.empty()) return CheckHeld(dims);
  return SymbolUnits(plan(), dims, {inputs(), reply_.binding.symbols}).status();
}

// For a plan of one length: checks that buffers hold as much as it reads.
absl::Status FusedModel::CheckHeld(const std::vector<Dims>& dims) const {
  for (const SharedBuffer& shared : plan().shared_buffers) {
    const auto input = static_cast<size_t>(shared.input);
    if (plan().inputs[input] < 0) continue;
    const Dims& wanted = plan().tensors[static_cast<size_t>(plan().inputs[input])].dims;
    if (dims[input] == wanted) continue;
    return InvalidArgument("input ", Quote(inputs()[input]), " is ", DimsToString(dims[input]),
                           " in its buffer, the plan is for ", DimsToString(wanted));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<HostTensor>> FusedModel::MakeOutputs(
    const std::vector<const HostTensor*>& given, const SharedMemory* memory) const {
  RETURN_IF_ERROR(CheckInputs(given, memory));
  return executor_->MakeOutputs(given, memory);
}

// An error of a run; where guarded kernels found a fault also the nodes and the tensor's name.
absl::Status FusedModel::NameFault(const absl::Status& status) const {
  const std::optional<RunFault> fault = RunFaultOf(status);
  if (!fault.has_value()) return status;
  std::string names;
  const Plan& ran = VariantOf(plan(), fault->variant);
  if (fault->group >= 0 && static_cast<size_t>(fault->group) < ran.groups.size()) {
    const std::vector<int>& nodes = ran.groups[static_cast<size_t>(fault->group)].nodes;
    names = StrJoin(nodes, ", ", [&](int n) {
      return QuoteShort(reply_.binding.nodes[static_cast<size_t>(n)]);
    });
  }
  std::string out = StrCat(Message(status), "; nodes: ", names.empty() ? "none" : names);
  if (fault->tensor < 0) return absl::Status(status.code(), out);
  const PlanTensor& tensor = ran.tensors[static_cast<size_t>(fault->tensor)];
  const auto index = static_cast<size_t>(tensor.index);
  std::string_view space = "an intermediate tensor";
  std::string name;
  if (tensor.space == Space::kInput) {
    space = "input";
    name = inputs()[index];
  } else if (tensor.space == Space::kOutput) {
    space = "output";
    name = outputs()[index];
  } else if (tensor.space == Space::kWeight) {
    space = "weight";
    name = reply_.binding.weights[index];
  } else if (tensor.space != Space::kArena && tensor.space != Space::kPass) {
    space = tensor.space == Space::kPrepared ? "a packed weight" : "a constant";
  }
  StrAppend(&out, StrCat("; tensor ", fault->tensor, " of the plan: ", space,
                         name.empty() ? "" : StrCat(" ", QuoteShort(name)), ", ",
                         DTypeName(tensor.dtype), DimsToString(tensor.dims)));
  return absl::Status(status.code(), out);
}

absl::Status FusedModel::RunInto(const std::vector<const HostTensor*>& given,
                                 const std::vector<HostTensor*>& results,
                                 RunProfile* profile) const {
  RETURN_IF_ERROR(CheckInputs(given, nullptr));
  return NameFault(executor_->RunInto(given, results, profile));
}

absl::Status FusedModel::RunInPlace(const std::vector<BoundTensor>& given,
                                    const std::vector<BoundTensor>& results,
                                    RunProfile* profile) const {
  return NameFault(executor_->RunInPlace(given, results, profile));
}

absl::Status FusedModel::RunShared(const std::vector<const HostTensor*>& given,
                                   const std::vector<HostTensor*>& results, SharedMemory* memory,
                                   RunProfile* profile) const {
  if (memory == nullptr) return InvalidArgument("no memory is given for what shares buffers");
  RETURN_IF_ERROR(CheckInputs(given, memory));
  return NameFault(executor_->RunShared(given, results, memory, profile));
}

absl::StatusOr<std::vector<HostTensor>> FusedModel::Run(const std::vector<HostTensor>& given,
                                                        RunProfile* profile) const {
  std::vector<const HostTensor*> pointers;
  for (const HostTensor& tensor : given) pointers.push_back(&tensor);
  RETURN_IF_ERROR(CheckInputs(pointers, nullptr));
  absl::StatusOr<std::vector<HostTensor>> results = executor_->Run(given, profile);
  return results.ok() ? std::move(results) : NameFault(results.status());
}

// In the order of a run; with `memory` null for those that lie there.
absl::StatusOr<std::vector<const HostTensor*>> FusedModel::Ordered(
    const std::map<std::string, HostTensor>& given, const SharedMemory* memory) const {
  std::vector<const HostTensor*> ordered;
  for (size_t i = 0; i < inputs().size(); ++i) {
    const std::string& name = inputs()[i];
    auto it = given.find(name);
    if (memory != nullptr && IsSharedInput(plan(), i)) {
      if (it != given.end()) {
        return InvalidArgument("input ", Quote(name), " is given, and lies in a shared buffer");
      }
      ordered.push_back(nullptr);
      continue;
    }
    if (it == given.end()) return InvalidArgument("input ", Quote(name), " is missing");
    ordered.push_back(&it->second);
  }
  for (const auto& [name, value] : given) {
    if (std::find(inputs().begin(), inputs().end(), name) == inputs().end()) {
      return InvalidArgument("the model has no input ", QuoteShort(name));
    }
  }
  return ordered;
}

absl::StatusOr<std::vector<HostTensor>> FusedModel::Run(
    const std::map<std::string, HostTensor>& given, RunProfile* profile) const {
  return RunNamed(given, nullptr, profile);
}

absl::StatusOr<std::vector<HostTensor>> FusedModel::Run(
    const std::map<std::string, HostTensor>& given, SharedMemory* memory,
    RunProfile* profile) const {
  if (memory == nullptr) return InvalidArgument("no memory is given for what shares buffers");
  return RunNamed(given, memory, profile);
}

absl::StatusOr<std::vector<HostTensor>> FusedModel::RunNamed(
    const std::map<std::string, HostTensor>& given, SharedMemory* memory,
    RunProfile* profile) const {
  ASSIGN_OR_RETURN(std::vector<const HostTensor*> ordered, Ordered(given, memory));
  ASSIGN_OR_RETURN(std::vector<HostTensor> results, MakeOutputs(ordered, memory));
  std::vector<HostTensor*> out;
  for (HostTensor& tensor : results) out.push_back(&tensor);
  RETURN_IF_ERROR(memory == nullptr ? RunInto(ordered, out, profile)
                                    : RunShared(ordered, out, memory, profile));
  RETURN_IF_ERROR(CutOutputs(plan().output_extents, &results));
  return results;
}

}  // namespace fusion
