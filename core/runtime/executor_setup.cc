#include <algorithm>
#include <map>

#include "core/bundle/plan_variants.h"
#include "core/bundle/symbol_values.h"
#include "core/runtime/executor_parts.h"

namespace fusion {
namespace {

// The time of one clock read: the shortest of a few rounds.
Nanoseconds MeasureClock(const Clock& clock) {
  constexpr int kRounds = 4;
  constexpr int kLooks = 16;
  Nanoseconds shortest = Nanoseconds::max();
  for (int round = 0; round < kRounds; ++round) {
    Nanoseconds begin = clock.Now();
    Nanoseconds end = begin;
    for (int i = 0; i < kLooks; ++i) end = clock.Now();
    shortest = std::min(shortest, (end - begin) / kLooks);
  }
  return shortest;
}

// A kernel may not need more memory than the plan says.
absl::Status CheckMemory(const LoadedKernel& kernel, const PlanKernel& planned) {
  const FusionKernelDescriptor& d = kernel.descriptor();
  const auto scratch = static_cast<uint64_t>(planned.scratch_bytes);
  const auto workspace = static_cast<uint64_t>(planned.workspace_bytes);
  if (d.scratch_bytes <= scratch && d.workspace_bytes <= workspace) return absl::OkStatus();
  return InvalidArgument("executor: kernel ", planned.symbol, " takes ", d.scratch_bytes,
                         " bytes of scratch and ", d.workspace_bytes,
                         " of workspace, the plan says ", scratch, " and ", workspace);
}

// Whether `packed` has what a launch of `plan` packs, at the same place of prepared memory.
bool IsPacked(const Plan& packed, const Plan& plan, const PlanLaunch& launch) {
  auto offset = [](const Plan& p, const PlanLaunch& l) {
    return p.tensors[static_cast<size_t>(PackedBy(p, l))].offset;
  };
  return std::any_of(packed.prepare.begin(), packed.prepare.end(), [&](const PlanLaunch& other) {
    return PackAlike(packed, other, plan, launch) && offset(packed, other) == offset(plan, launch);
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<Executor>> Executor::Create(
    Plan plan, std::vector<std::shared_ptr<const LoadedKernel>> kernels, ExecutorOptions options) {
  RETURN_IF_ERROR(Verify(plan));
  if (options.parallel_tasks && options.workers < 1) {
    return InvalidArgument("executor: parallel_tasks is given without its number of workers");
  }
  std::unique_ptr<Executor> executor(
      new Executor(std::move(plan), std::move(kernels), std::move(options)));
  RETURN_IF_ERROR(executor->CheckKernels());
  RETURN_IF_ERROR(executor->SetUp());
  return executor;
}

absl::Status Executor::SetUp() {
  if (options_.parallel_tasks) {
    workers_ = options_.workers;
  } else {
    if (pool_ == nullptr) {
      pool_ = std::make_shared<TaskPool>(options_.threads > 0 ? options_.threads : plan_.threads);
    }
    workers_ = pool_->threads();
  }
  const std::vector<bool> launched = LaunchedKernels();
  for (size_t k = 0; k < kernels_.size(); ++k) {
    if (!launched[k]) continue;
    const FusionKernelDescriptor& d = kernels_[k]->descriptor();
    uint64_t stride =
        (d.scratch_bytes / kPage + 1) * kPage + 64;  // neighbours start in different cache sets
    scratch_stride_ = std::max(scratch_stride_, stride);
    workspace_bytes_ = std::max<uint64_t>(workspace_bytes_, d.workspace_bytes);
  }
  context_bytes_ =
      static_cast<int64_t>(Memory::Rounded(static_cast<uint64_t>(plan_.arena_bytes)) +
                           Memory::Rounded(scratch_stride_ * static_cast<uint64_t>(workers_)) +
                           Memory::Rounded(workspace_bytes_));
  const int idle =
      options_.max_idle_arenas > 0 ? options_.max_idle_arenas : std::max(workers_, UsableCores());
  if (!plan_.variants.empty()) idle_shares_ = static_cast<int>(plan_.variants.size()) + 1;
  max_idle_ = static_cast<size_t>(std::max(idle / idle_shares_, 1));
  const bool open = !plan_.symbols.empty();
  if (!open) steps_ = MakeSteps(plan_.launches, nullptr);
  FindPatches();
  if (options_.sample_latencies && !open && plan_.loops.empty()) {
    MutexLock lock(&mutex_);
    sampler_ =
        std::make_unique<LatencySampler>(plan_.launches.size(), MeasureClock(*options_.clock));
    sampled_values_ = sampler_->capacity();
  }
  if (prepared_ == nullptr) {
    ASSIGN_OR_RETURN(Memory prepared, Memory::Allocate(static_cast<uint64_t>(PreparedBytes(plan_)),
                                                       "prepared weights", /*read_whole=*/true));
    prepared_ = std::make_shared<Memory>(std::move(prepared));
  }
  weights_.resize(plan_.weights.size(), nullptr);
  return MakeVariants();
}

// By plan kernel: whether this plan launches it, not only a variant of it.
std::vector<bool> Executor::LaunchedKernels() const {
  std::vector<bool> launched(kernels_.size(), false);
  for (const auto* launches : {&plan_.prepare, &plan_.launches}) {
    for (const PlanLaunch& launch : *launches) launched[static_cast<size_t>(launch.kernel)] = true;
  }
  return launched;
}

// Each is an executor on the same threads and prepared weights.
absl::Status Executor::MakeVariants() {
  std::map<Digest, std::shared_ptr<const LoadedKernel>> kernels;
  for (size_t k = 0; k < kernels_.size(); ++k) kernels[plan_.kernels[k].key] = kernels_[k];
  for (const PlanVariant& variant : plan_.variants) {
    std::vector<std::shared_ptr<const LoadedKernel>> own;
    for (const PlanKernel& kernel : variant.plan->kernels) own.push_back(kernels[kernel.key]);
    ExecutorOptions options = options_;
    options.sample_latencies = false;
    std::unique_ptr<Executor> executor(
        new Executor(*variant.plan, std::move(own), std::move(options)));
    executor->pool_ = pool_;
    executor->prepared_ = prepared_;
    executor->idle_shares_ = idle_shares_;
    RETURN_IF_ERROR(executor->CheckKernels());
    RETURN_IF_ERROR(executor->SetUp());
    variants_.push_back(std::move(executor));
  }
  return absl::OkStatus();
}

std::vector<Executor::Step> Executor::MakeSteps(const std::vector<PlanLaunch>& launches,
                                                const Shapes* shapes) const {
  std::vector<Step> out;
  for (const PlanLaunch& launch : launches) {
    auto position = static_cast<size_t>(launch.kernel);
    Step step{.kernel = kernels_[position].get(), .position = position, .tasks = {}};
    const FusionKernelDescriptor& d = step.kernel->descriptor();
    const int64_t* dims = shapes == nullptr ? nullptr : shapes->sizes[position].data();
    for (int phase = 0; phase < d.phases; ++phase) step.tasks.push_back(d.tasks(phase, dims));
    out.push_back(std::move(step));
  }
  return out;
}

void Executor::FindPatches() {
  size_t position = 0;
  for (const PlanLaunch& launch : plan_.launches) {
    place_patches_.emplace_back();
    for (int t : launch.tensors) {
      const PlanTensor& tensor = plan_.tensors[static_cast<size_t>(t)];
      Patch patch{position++, static_cast<size_t>(tensor.index), static_cast<size_t>(t)};
      if (tensor.space == Space::kPass) place_patches_.back().push_back(patch);
      if (tensor.space == Space::kInput) input_patches_.push_back(patch);
      if (tensor.space == Space::kOutput) output_patches_.push_back(patch);
    }
  }
}

absl::Status Executor::CheckKernels() const {
  if (kernels_.size() != plan_.kernels.size()) {
    return InvalidArgument("executor: ", kernels_.size(), " kernels for a plan of ",
                           plan_.kernels.size());
  }
  for (size_t i = 0; i < kernels_.size(); ++i) {
    if (kernels_[i] == nullptr) {
      return FailedPrecondition("executor: kernel ", plan_.kernels[i].symbol, " is missing");
    }
    if (kernels_[i]->descriptor().phases != plan_.kernels[i].phases) {
      return InvalidArgument("executor: kernel ", plan_.kernels[i].symbol, " has ",
                             kernels_[i]->descriptor().phases, " phases, the plan says ",
                             plan_.kernels[i].phases);
    }
    RETURN_IF_ERROR(CheckMemory(*kernels_[i], plan_.kernels[i]));
    const size_t sizes = plan_.kernels[i].sizes.size();
    if (static_cast<size_t>(kernels_[i]->descriptor().dims) != sizes) {
      return InvalidArgument("executor: kernel ", plan_.kernels[i].symbol, " takes ",
                             kernels_[i]->descriptor().dims, " run-time dims, the plan gives ",
                             sizes);
    }
  }
  for (const PlanLaunch& launch : plan_.prepare) {
    const PlanKernel& kernel = plan_.kernels[static_cast<size_t>(launch.kernel)];
    if (kernel.sizes.empty()) continue;
    return InvalidArgument("executor: kernel ", kernel.symbol,
                           " runs once and takes run-time dims");
  }
  for (const auto* launches : {&plan_.prepare, &plan_.launches}) {
    for (const PlanLaunch& launch : *launches) {
      const auto& kernel = kernels_[static_cast<size_t>(launch.kernel)];
      if (kernel->descriptor().tensors != static_cast<int>(launch.tensors.size())) {
        return InvalidArgument("executor: kernel ",
                               plan_.kernels[static_cast<size_t>(launch.kernel)].symbol, " takes ",
                               kernel->descriptor().tensors, " tensors, the plan passes ",
                               launch.tensors.size());
      }
    }
  }
  return absl::OkStatus();
}

void* Executor::Place(const PlanTensor& tensor, const Context& context) const {
  auto index = static_cast<size_t>(tensor.index);
  switch (tensor.space) {
    case Space::kInput:
    case Space::kOutput:
    case Space::kPass:
      return nullptr;  // comes with each run, or with each pass
    case Space::kWeight:
      return const_cast<std::byte*>(weights_[index]);
    case Space::kConstant:
      return const_cast<std::byte*>(plan_.constants[index]->bytes());
    case Space::kPrepared:
      return prepared_->At(tensor.offset);
    case Space::kArena:
      return context.arena.At(tensor.offset);
  }
  return nullptr;
}

Executor::CallTable Executor::MakeCallTable(const std::vector<PlanLaunch>& launches,
                                            Context* owner) const {
  const Context& context = *owner;
  CallTable table;
  for (const PlanLaunch& launch : launches) {
    for (int t : launch.tensors) {
      const PlanTensor& tensor = plan_.tensors[static_cast<size_t>(t)];
      table.tensors.push_back({Place(tensor, context), tensor.strides.data()});
      table.elements.push_back(ElementsAt(tensor, MostUnits(plan_.symbols)));
    }
  }
  size_t next = 0;
  for (const PlanLaunch& launch : launches) {
    const bool guarded = kernels_[static_cast<size_t>(launch.kernel)]->guarded();
    const size_t size = guarded ? sizeof(FusionGuardedKernelArgs) : sizeof(FusionKernelArgs);
    table.args.push_back(
        {{static_cast<unsigned>(size), FUSION_KERNEL_ABI_VERSION, table.tensors.data() + next,
          nullptr, context.workspace.data.get(), context.scratch_area.data.get(), scratch_stride_},
         table.elements.data() + next,
         guarded ? owner->faults.data() : nullptr});
    next += launch.tensors.size();
  }
  return table;
}

// Ensures that no kernel accesses elements outside its tensors, even if a cache supplied the wrong
// kernel: compares the range that each kernel reports with the tensors. Launches without tasks
// access nothing.
absl::Status Executor::CheckAccesses(const std::vector<PlanLaunch>& launches,
                                     const std::vector<Step>& steps, const CallTable& table) const {
  size_t next = 0;
  for (size_t l = 0; l < launches.size(); ++l) {
    const PlanLaunch& launch = launches[l];
    const std::span<const FusionInt64> elements(table.elements.data() + next,
                                                launch.tensors.size());
    next += launch.tensors.size();
    const std::vector<int64_t>& tasks = steps[l].tasks;
    if (std::all_of(tasks.begin(), tasks.end(), [](int64_t n) { return n == 0; })) continue;
    absl::Status status = CheckReach(*steps[l].kernel, table.args[l].args.dims, elements);
    if (status.ok()) continue;
    const PlanKernel& kernel = plan_.kernels[static_cast<size_t>(launch.kernel)];
    return Annotate(status, StrCat("executor: kernel ", kernel.symbol, " (", kernel.label, ")"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Executor::Context>> Executor::MakeContext() const {
  auto context = std::make_unique<Context>();
  ASSIGN_OR_RETURN(context->arena, Memory::Allocate(static_cast<uint64_t>(plan_.arena_bytes),
                                                    "intermediate tensors"));
  ASSIGN_OR_RETURN(
      context->scratch_area,
      Memory::Allocate(scratch_stride_ * static_cast<uint64_t>(workers_), "kernel scratch"));
  ASSIGN_OR_RETURN(context->workspace, Memory::Allocate(workspace_bytes_, "kernel workspace"));
  const bool guarded = std::any_of(kernels_.begin(), kernels_.end(),
                                   [](const auto& kernel) { return kernel->guarded(); });
  if (guarded) context->faults.resize(static_cast<size_t>(workers_));
  context->table = MakeCallTable(plan_.launches, context.get());
  context->boundaries.resize(plan_.launches.size() + 1);
  if (!plan_.loops.empty()) context->walk.emplace(plan_);
  return context;
}

absl::Status Executor::Prepare(
    const std::function<absl::StatusOr<const HostTensor*>(int)>& weight) {
  if (variants_.empty()) return PrepareOwn(weight, nullptr);
  // Each weight is requested once: a second request may read it to another address.
  std::vector<const HostTensor*> given(plan_.weights.size(), nullptr);
  auto once = [&](int i) -> absl::StatusOr<const HostTensor*> {
    const HostTensor*& known = given[static_cast<size_t>(i)];
    if (known != nullptr) return known;
    ASSIGN_OR_RETURN(known, weight(i));
    return known;
  };
  RETURN_IF_ERROR(PrepareOwn(once, nullptr));
  ready_ = false;  // not before all are
  for (const auto& variant : variants_) RETURN_IF_ERROR(variant->PrepareOwn(once, &plan_));
  ready_ = true;
  return absl::OkStatus();
}

// `packed`: the plan whose prepared weights are in memory already; null: none.
absl::Status Executor::PrepareOwn(
    const std::function<absl::StatusOr<const HostTensor*>(int)>& weight, const Plan* packed) {
  ready_ = false;
  {
    MutexLock lock(&mutex_);
    idle_.clear();  // they know where the weights lay
  }
  for (size_t i = 0; i < plan_.weights.size(); ++i) {
    if (plan_.weights[i] < 0) continue;
    const PlanTensor& declared = plan_.tensors[static_cast<size_t>(plan_.weights[i])];
    ASSIGN_OR_RETURN(const HostTensor* given, weight(static_cast<int>(i)));
    if (given == nullptr) return InvalidArgument("weight ", i, " is a null pointer");
    if (given->dtype() != declared.dtype || given->dims() != declared.dims) {
      return InvalidArgument("weight ", i, " is ", DTypeName(given->dtype()),
                             DimsToString(given->dims()), ", the plan says ",
                             DTypeName(declared.dtype), DimsToString(declared.dims));
    }
    weights_[i] = given->bytes();
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Context> context, MakeContext());
  std::vector<PlanLaunch> launches = plan_.prepare;
  if (packed != nullptr) {
    std::erase_if(launches,
                  [&](const PlanLaunch& launch) { return IsPacked(*packed, plan_, launch); });
  }
  CallTable table = MakeCallTable(launches, context.get());
  const std::vector<Step> steps = MakeSteps(launches, nullptr);
  RETURN_IF_ERROR(CheckAccesses(launches, steps, table));
  if (plan_.symbols.empty()) {
    RETURN_IF_ERROR(CheckAccesses(plan_.launches, steps_, context->table));
  }
  RETURN_IF_ERROR(RunLaunches(launches, steps, table, /*timed=*/false, context.get()));
  GiveContext(std::move(context), /*completed=*/false, /*timed=*/false);
  ready_ = true;
  return absl::OkStatus();
}

}  // namespace fusion
