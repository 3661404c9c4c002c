#include "client/family_model.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include "core/base/threads/named_thread.h"
#include "core/bundle/symbol_values.h"
#include "core/onnx/model_io.h"
#include "core/onnx/reference_weights.h"
#include "core/onnx/weight_source.h"

namespace fusion {
namespace {

using Ranges = std::map<std::string, DimRange>;

// The largest relative loss of a plan against the exact plans of its samples.
double LossOf(const Plan& plan) {
  double worst = 0;
  for (const PlanSample& sample : plan.samples) {
    if (sample.exact_us > 0) worst = std::max(worst, sample.family_us / sample.exact_us - 1);
  }
  return worst;
}

// Two halves of some ranges: of the one whose ends differ by the largest factor. nullopt if no
// range has two values.
std::optional<std::pair<Ranges, Ranges>> Halves(const Ranges& ranges) {
  auto factor = [](const DimRange& r) {
    return static_cast<double>(r.most) / static_cast<double>(std::max(r.least, r.multiple));
  };
  auto widest = std::max_element(ranges.begin(), ranges.end(), [&](const auto& a, const auto& b) {
    return factor(a.second) < factor(b.second);
  });
  if (widest == ranges.end() || widest->second.most <= widest->second.least) return std::nullopt;
  const DimRange& range = widest->second;
  const double low = static_cast<double>(std::max(range.least, range.multiple));
  const double middle = std::sqrt(low * static_cast<double>(range.most));
  const auto steps = static_cast<int64_t>(middle / static_cast<double>(range.multiple));
  int64_t at = std::clamp(steps * range.multiple, range.least, range.most - range.multiple);
  if (at < 2) at = range.least;  // 0 and 1 are no range: with neither is there much to compute
  Ranges lower = ranges;
  Ranges upper = ranges;
  lower[widest->first].most = at;
  upper[widest->first].least = at + range.multiple;
  for (Ranges* half : {&lower, &upper}) {
    DimRange& r = (*half)[widest->first];
    if (r.likely < r.least || r.likely > r.most) r.likely = 0;
  }
  return std::make_pair(std::move(lower), std::move(upper));
}

// The options of a plan for these ranges; what has one value is bound to it.
PlanOptions OptionsFor(const PlanOptions& plan, const Ranges& ranges) {
  PlanOptions out = plan;
  out.dim_ranges.clear();
  for (const auto& [name, range] : ranges) {
    if (range.least == range.most) {
      out.dim_bindings[name] = range.most;
    } else {
      out.dim_ranges[name] = range;
    }
  }
  return out;
}

// Splits the ranges until no plan loses much. `base` gets the capacities of the buffers of a plan
// for all ranges: all plans share them.
absl::StatusOr<std::vector<Ranges>> TakeApart(const Client& client,
                                              const FamilyModelOptions& options,
                                              FusionRequest* base) {
  std::vector<Ranges> done;
  std::deque<Ranges> open = {options.model.plan.dim_ranges};
  while (!open.empty()) {
    Ranges ranges = std::move(open.front());
    open.pop_front();
    FusionRequest request = *base;
    request.mode = PlanMode::kPlanOnly;
    request.options = OptionsFor(base->options, ranges);
    ASSIGN_OR_RETURN(FusionReply reply, client.PlanFusion(request));
    std::vector<SharedNames>& shared = base->options.shared_buffers;
    for (size_t s = 0; s < std::min(shared.size(), reply.plan.shared_buffers.size()); ++s) {
      if (shared[s].capacity == 0) shared[s].capacity = reply.plan.shared_buffers[s].capacity;
    }
    const auto plans = static_cast<int>(done.size() + open.size()) + 1;
    auto halves = Halves(ranges);
    if (plans >= options.most_plans || LossOf(reply.plan) <= options.most_loss || !halves) {
      done.push_back(std::move(ranges));
      continue;
    }
    open.push_back(std::move(halves->first));
    open.push_back(std::move(halves->second));
  }
  return done;
}

}  // namespace

absl::StatusOr<std::unique_ptr<FamilyModel>> FamilyModel::Load(const Client& client,
                                                               const std::string& path,
                                                               const FamilyModelOptions& options) {
  if (options.model.plan.dim_ranges.empty()) {
    return InvalidArgument("no dim_ranges: a family leaves dims open");
  }
  ASSIGN_OR_RETURN(onnx::ModelProto loaded, LoadModel(path));
  auto model = std::make_shared<const onnx::ModelProto>(std::move(loaded));
  const std::string directory = ModelDirectory(path);
  ASSIGN_OR_RETURN(
      onnx::ModelProto bare,
      ReferenceWeights(*model, {.directory = directory, .overridden = options.model.overridden}));
  FusionRequest request;
  request.onnx_model = bare.SerializeAsString();
  request.model_name = bare.graph().name();
  request.target = TargetOf(options.model);
  request.options = options.model.plan;
  request.allow_fused = options.model.allow_fused;
  ASSIGN_OR_RETURN(std::vector<Ranges> all, TakeApart(client, options, &request));
  FamilyModelOptions fixed = options;
  fixed.model.plan = request.options;
  std::unique_ptr<FamilyModel> out(new FamilyModel());
  out->ranges_ = options.model.plan.dim_ranges;
  for (const Ranges& ranges : all) {
    request.options = OptionsFor(fixed.model.plan, ranges);
    WeightSource source(*model, directory);
    Part part;
    part.ranges = request.options.dim_ranges;
    for (const auto& [name, range] : ranges) {
      if (range.least == range.most) part.bound[name] = range.most;
    }
    ASSIGN_OR_RETURN(
        part.model,
        FusedModel::Load(
            client, request, [&source](const std::string& name) { return source.Take(name); },
            options.model.executor, options.model.reports));
    out->parts_.push_back(std::move(part));
  }
  out->StartExact(client, std::move(model), directory, fixed);
  return out;
}

FamilyModel::~FamilyModel() {
  if (maker_.joinable()) maker_.join();
}

void FamilyModel::StartExact(const Client& client, std::shared_ptr<const onnx::ModelProto> model,
                             std::string directory, const FamilyModelOptions& options) {
  FusedModelOptions exact = options.model;
  bool likely = options.exact_likely;
  for (const auto& [name, range] : options.model.plan.dim_ranges) {
    likely = likely && range.likely > 0;
    exact.plan.dim_bindings[name] = range.likely;
  }
  exact.plan.dim_ranges.clear();
  if (!likely) {
    MutexLock lock(&mutex_);
    fared_ = NotFound("no exact plan was asked for: not every range has a likely value");
    return;
  }
  std::shared_ptr<const Client> own = client.Share();
  maker_ =
      NamedThread("fusion-exact", [this, own, model = std::move(model),
                                   directory = std::move(directory), exact = std::move(exact)] {
        absl::StatusOr<std::unique_ptr<FusedModel>> made =
            FusedModel::Load(*own, *model, directory, exact);
        MutexLock lock(&mutex_);
        fared_ = made.status();
        if (!made.ok()) return;
        exact_ = *std::move(made);
        ready_.store(exact_.get(), std::memory_order_release);
      });
}

std::optional<absl::Status> FamilyModel::exact() const {
  MutexLock lock(&mutex_);
  return fared_;
}

absl::StatusOr<const FusedModel*> FamilyModel::ModelFor(
    const std::map<std::string, HostTensor>& given, const SharedMemory* memory) const {
  const Plan& any = parts_[0].model->plan();
  std::vector<const HostTensor*> ordered(inputs().size(), nullptr);
  for (size_t i = 0; i < ordered.size(); ++i) {
    auto it = given.find(inputs()[i]);
    if (it != given.end()) ordered[i] = &it->second;
    const bool shared = memory != nullptr && IsSharedInput(any, i);
    if (ordered[i] == nullptr && !shared) {
      return InvalidArgument("input ", Quote(inputs()[i]), " is missing");
    }
  }
  ASSIGN_OR_RETURN(const std::vector<Dims> dims, InputDims(any, ordered, memory));
  return ModelAt(dims);
}

// For inputs of these dims.
absl::StatusOr<const FusedModel*> FamilyModel::ModelAt(const std::vector<Dims>& dims) const {
  const FusedModel* exact = ready_.load(std::memory_order_acquire);
  if (exact != nullptr && SymbolUnits(exact->plan(), dims).ok()) return exact;
  absl::Status why = absl::OkStatus();
  for (const Part& part : parts_) {
    const FusedModel& model = *part.model;
    absl::Status fits =
        SymbolUnits(model.plan(), dims, {model.inputs(), model.reply().binding.symbols}).status();
    if (fits.ok()) return &model;
    if (why.ok()) why = std::move(fits);
  }
  return why;
}

absl::StatusOr<SharedMemory> FamilyModel::MakeMemory(
    const std::map<std::string, int64_t>& dims) const {
  for (const auto& [name, value] : dims) {
    if (!ranges_.contains(name)) {
      return InvalidArgument("no plan leaves a dim ", QuoteShort(name), " open");
    }
  }
  std::vector<std::string> shown;
  for (const Part& part : parts_) {
    std::map<std::string, int64_t> open;
    bool fits = true;
    for (const auto& [name, whole] : ranges_) {
      auto asked = dims.find(name);
      const int64_t value = asked == dims.end() ? whole.most : asked->second;
      if (&part == &parts_[0]) shown.push_back(StrCat(name, "=", value));
      auto bound = part.bound.find(name);
      if (bound != part.bound.end()) {
        fits = fits && bound->second == value;
        continue;
      }
      const DimRange& range = part.ranges.at(name);
      fits = fits && value >= range.least && value <= range.most;
      open[name] = value;
    }
    if (fits) return part.model->MakeMemory(open);
  }
  return InvalidArgument("no plan is for ", StrJoin(shown, ", "));
}

absl::StatusOr<std::vector<HostTensor>> FamilyModel::Run(
    const std::map<std::string, HostTensor>& given, RunProfile* profile) const {
  ASSIGN_OR_RETURN(const FusedModel* model, ModelFor(given));
  return model->Run(given, profile);
}

absl::StatusOr<std::vector<HostTensor>> FamilyModel::Run(
    const std::map<std::string, HostTensor>& given, SharedMemory* memory,
    RunProfile* profile) const {
  ASSIGN_OR_RETURN(const FusedModel* model, ModelFor(given, memory));
  return model->Run(given, memory, profile);
}

absl::Status FamilyModel::RunInPlace(const std::vector<BoundTensor>& given,
                                     const std::vector<BoundTensor>& results,
                                     RunProfile* profile) const {
  std::vector<Dims> dims;
  for (const BoundTensor& tensor : given) {
    if (tensor.dims == nullptr) return InvalidArgument("input ", dims.size(), " is not given");
    dims.push_back(*tensor.dims);
  }
  if (dims.size() != inputs().size()) {
    return InvalidArgument(dims.size(), " inputs given, the model has ", inputs().size());
  }
  ASSIGN_OR_RETURN(const FusedModel* model, ModelAt(dims));
  return model->RunInPlace(given, results, profile);
}

}  // namespace fusion
