#include "core/runtime/executor.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <map>
#include <utility>

#include "core/bundle/plan_loops.h"
#include "core/bundle/plan_variants.h"
#include "core/bundle/symbol_values.h"
#include "core/runtime/loop_walk.h"
#include "core/runtime/run_binding.h"

namespace fusion {
namespace {

constexpr uint64_t kPage = 4096;
// Packed weights are read once a run, all of them: in small pages that takes an address translation
// for every 4 KiB, and where they lie in caches by address is left to chance.
constexpr uint64_t kHugePage = uint64_t{2} << 20;

// In the payload of a fault's status: which of the launch's tensors, -1 for a buffer of the kernel.
constexpr char kFaultTensor[] = "fusion.kernel_fault.tensor";
// The same as a RunFault: "GROUP TENSOR VARIANT".
constexpr char kRunFault[] = "fusion.run_fault";

void SetRunFault(const RunFault& fault, absl::Status* status) {
  status->SetPayload(kRunFault,
                     absl::Cord(StrCat(fault.group, " ", fault.tensor, " ", fault.variant)));
}

// What a look at the clock takes: the shortest of a few rounds.
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

// What the plan says a run takes is all that it gets.
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

absl::Status RunTasks(const LoadedKernel& kernel, const FusionGuardedKernelArgs& args, int phase,
                      int64_t begin, int64_t end, int worker) {
  absl::Status status = kernel.Run(args.args, phase, begin, end, worker);
  if (status.ok() || args.faults == nullptr) return status;
  const FusionKernelFault& fault = args.faults[worker];
  if (fault.code == FUSION_KERNEL_OK) return status;
  absl::Status found = FaultStatus(fault);
  found.SetPayload(kFaultTensor, absl::Cord(StrCat(fault.tensor)));
  return found;
}

}  // namespace

// Page-aligned bytes.
struct Executor::Memory {
  static uint64_t Rounded(uint64_t bytes) { return (bytes / kPage + 1) * kPage; }
  // `read_whole`: every run reads all of it.
  static absl::StatusOr<Memory> Allocate(uint64_t bytes, std::string_view what,
                                         bool read_whole = false) {
    Memory memory;
    uint64_t rounded = Rounded(bytes);
    const bool huge = read_whole && bytes >= kHugePage;
    if (rounded <= INT64_MAX && FitsInMemory(static_cast<int64_t>(rounded))) {
      void* data = nullptr;
      const int failed = posix_memalign(&data, huge ? kHugePage : kPage, rounded);
      if (failed == 0) memory.data.reset(data);
    }
    if (memory.data == nullptr) {
      return ResourceExhausted("executor: no memory for ", bytes, " bytes of ", what);
    }
    // Whole huge pages only: the rest would take memory that nobody uses. Advice may be declined.
    if (huge) (void)madvise(memory.data.get(), bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
    return memory;
  }
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  std::unique_ptr<void, Free> data;

  void* At(int64_t offset) const { return static_cast<char*>(data.get()) + offset; }
};

// One launch of the plan, as far as it is the same in every run.
struct Executor::Step {
  const LoadedKernel* kernel = nullptr;
  size_t position = 0;         // in Plan::kernels
  std::vector<int64_t> tasks;  // by phase
};

// The arguments of launches, one after the other.
struct Executor::CallTable {
  std::vector<FusionTensor> tensors;
  std::vector<FusionInt64> elements;          // of each of `tensors`
  std::vector<FusionGuardedKernelArgs> args;  // by launch; they point into the other two
};

// The phase that a run is at, as its workers see it.
struct Executor::PhaseRun {
  const LoadedKernel* kernel = nullptr;
  const FusionGuardedKernelArgs* args = nullptr;
  int phase = 0;
  std::atomic<bool> failed{false};
  Mutex mutex;
  absl::Status first ABSL_GUARDED_BY(mutex);

  void Do(int64_t begin, int64_t end, int worker) {
    if (failed.load(std::memory_order_relaxed)) return;  // nobody will read what this computes
    absl::Status status = RunTasks(*kernel, *args, phase, begin, end, worker);
    if (status.ok()) return;
    MutexLock lock(&mutex);
    if (first.ok()) first = std::move(status);
    failed.store(true, std::memory_order_relaxed);
  }

  absl::Status TakeStatus() {
    if (!failed.load(std::memory_order_relaxed)) return absl::OkStatus();
    MutexLock lock(&mutex);
    failed.store(false, std::memory_order_relaxed);
    return std::exchange(first, absl::OkStatus());
  }
};

// What depends on the values of the plan's symbols.
struct Executor::Shapes {
  std::vector<int64_t> units;               // of the symbols
  std::vector<std::vector<int64_t>> sizes;  // by kernel: its dims
  std::vector<Dims> strides;                // by plan tensor
  std::vector<int64_t> offsets;             // likewise, bytes
  std::vector<Step> steps;                  // by launch
};

// What one run needs for itself.
struct Executor::Context {
  Memory arena;
  Memory scratch_area;
  Memory workspace;
  CallTable table;
  Shapes shapes;  // of a plan with symbols: those of the last run
  PhaseRun phase;
  std::vector<FusionKernelFault> faults;  // by worker; none unless a kernel is guarded
  // Holds one pointer, so that nothing is allocated for it.
  TaskBody body = [this](int64_t begin, int64_t end, int worker) { phase.Do(begin, end, worker); };
  std::vector<Nanoseconds> boundaries;  // of a timed run: its begin, the end of each launch
  std::vector<Nanoseconds> spent;       // of one with loops: by launch, in all passes
  std::optional<LoopWalk> walk;         // likewise
  bool fresh = true;                    // no run has touched its memory
};

Executor::Executor(Plan plan, std::vector<std::shared_ptr<const LoadedKernel>> kernels,
                   ExecutorOptions options)
    : plan_(std::move(plan)), kernels_(std::move(kernels)), options_(std::move(options)) {}

Executor::~Executor() = default;

std::optional<RunFault> RunFaultOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kRunFault);
  if (!payload.has_value()) return std::nullopt;
  RunFault fault;
  const std::string text(*payload);
  const char* const end = text.data() + text.size();
  const char* at = text.data();
  for (int* field : {&fault.group, &fault.tensor, &fault.variant}) {
    const auto read = std::from_chars(at, end, *field);
    if (read.ec != std::errc()) return std::nullopt;
    at = std::min(read.ptr + 1, end);
  }
  return fault;
}

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

// By plan kernel: those that this plan runs, not only a variant of it.
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

ExecutorMemory Executor::memory() const {
  ExecutorMemory out{.prepared_bytes = PreparedBytes(plan_), .arena_bytes = context_bytes_};
  for (const auto& variant : variants_) {
    const ExecutorMemory own = variant->memory();
    out.arena_bytes = std::max(out.arena_bytes, own.arena_bytes);
    out.idle_arenas += own.idle_arenas;
  }
  MutexLock lock(&mutex_);
  out.idle_arenas += static_cast<int>(idle_.size());
  return out;
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

// Whatever was cached, no kernel leaves the memory that the plan gives it: each tells what it
// accesses, and that is compared with what there is. Launches without tasks access nothing.
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

// `timed`: whether the run that begins is one whose time is taken.
absl::StatusOr<std::unique_ptr<Executor::Context>> Executor::TakeContext(bool* timed) {
  *timed = false;
  {
    MutexLock lock(&mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Context> context = std::move(idle_.back());
      idle_.pop_back();
      // A first run waits for the memory it touches: not what the kernels take.
      *timed = sampler_ != nullptr && !context->fresh && sampler_->Begin();
      return context;
    }
  }
  return MakeContext();
}

// `timed`: `boundaries` are those of a run that may be reported.
void Executor::GiveContext(std::unique_ptr<Context> context, bool completed, bool timed) {
  MutexLock lock(&mutex_);
  if (sampler_ != nullptr && completed) {
    sampler_->CountRun();
    if (timed) {
      sampler_->Add(context->boundaries);
      sampler_->Charge(options_.clock->Now() - context->boundaries.back());
    }
  }
  auto idle = static_cast<int64_t>(idle_.size());
  const int64_t most = options_.max_idle_bytes / idle_shares_;
  bool room = idle_.size() < max_idle_ && (idle + 1) * context_bytes_ <= most;
  if (idle == 0 || room) idle_.push_back(std::move(context));
}

absl::Status Executor::RunLaunches(const std::vector<PlanLaunch>& launches,
                                   const std::vector<Step>& steps, const CallTable& table,
                                   bool timed, Context* context) const {
  if (timed) context->boundaries[0] = options_.clock->Now();
  for (size_t i = 0; i < steps.size(); ++i) {
    absl::Status status = RunPhases(steps[i], table.args[i], context);
    if (!status.ok()) return LocateFailure(status, launches[i]);
    if (timed) context->boundaries[i + 1] = options_.clock->Now();
  }
  return absl::OkStatus();
}

// All launches of a run whose plan has loops.
absl::Status Executor::RunInPasses(bool timed, const RunBinding& binding, Context* context) const {
  const std::vector<Step>& steps = plan_.symbols.empty() ? steps_ : context->shapes.steps;
  auto where = [&](int tensor) {
    const PlanTensor& t = plan_.tensors[static_cast<size_t>(tensor)];
    const auto index = static_cast<size_t>(t.index);
    if (t.space == Space::kInput) return binding.inputs[index].data;
    if (t.space == Space::kOutput) {
      const bool open = !plan_.symbols.empty();
      const int64_t offset = open ? context->shapes.offsets[static_cast<size_t>(tensor)] : t.offset;
      return binding.outputs[index].data + offset;
    }
    return static_cast<std::byte*>(Place(t, *context));
  };
  auto launch = [&](int number) {
    const auto at = static_cast<size_t>(number);
    for (const Patch& p : place_patches_[at]) {
      context->table.tensors[p.position].data = context->walk->place(p.index);
    }
    const Nanoseconds before = timed ? options_.clock->Now() : Nanoseconds(0);
    absl::Status status = RunPhases(steps[at], context->table.args[at], context);
    if (!status.ok()) return LocateFailure(status, plan_.launches[at]);
    if (timed) context->spent[at] += options_.clock->Now() - before;
    return status;
  };
  if (timed) {
    context->spent.assign(plan_.launches.size(), Nanoseconds(0));
    context->boundaries[0] = options_.clock->Now();
  }
  RETURN_IF_ERROR(context->walk->Run({where, launch}, context->shapes.units));
  for (size_t i = 0; timed && i < context->spent.size(); ++i) {
    context->boundaries[i + 1] = context->boundaries[i] + context->spent[i];
  }
  return absl::OkStatus();
}

// The error of a launch with its kernel, group and, of a fault, the plan's tensor.
absl::Status Executor::LocateFailure(const absl::Status& status, const PlanLaunch& launch) const {
  const PlanKernel& kernel = plan_.kernels[static_cast<size_t>(launch.kernel)];
  const absl::optional<absl::Cord> payload = status.GetPayload(kFaultTensor);
  if (!payload.has_value()) return Annotate(status, StrCat("kernel ", kernel.symbol));
  RunFault fault{.group = launch.group, .tensor = -1};
  int position = -1;
  const std::string text(*payload);
  std::from_chars(text.data(), text.data() + text.size(), position);
  if (position >= 0 && static_cast<size_t>(position) < launch.tensors.size()) {
    fault.tensor = launch.tensors[static_cast<size_t>(position)];
  }
  absl::Status located = Annotate(
      status, StrCat("kernel ", kernel.symbol, " (", kernel.label, "), group ", launch.group));
  SetRunFault(fault, &located);
  return located;
}

absl::Status Executor::RunPhases(const Step& step, const FusionGuardedKernelArgs& args,
                                 Context* context) const {
  for (size_t p = 0; p < step.tasks.size(); ++p) {
    int64_t tasks = step.tasks[p];
    auto phase = static_cast<int>(p);
    if (tasks == 0) continue;
    if (pool_ != nullptr && (tasks == 1 || workers_ == 1)) {
      RETURN_IF_ERROR(RunTasks(*step.kernel, args, phase, 0, tasks, 0));
      continue;
    }
    context->phase.kernel = step.kernel;
    context->phase.args = &args;
    context->phase.phase = phase;
    if (pool_ != nullptr) {
      pool_->Run(tasks, context->body);
    } else {
      options_.parallel_tasks(tasks, context->body);
    }
    RETURN_IF_ERROR(context->phase.TakeStatus());
  }
  return absl::OkStatus();
}

absl::Status Executor::Prepare(
    const std::function<absl::StatusOr<const HostTensor*>(int)>& weight) {
  if (variants_.empty()) return PrepareOwn(weight, nullptr);
  // Asked for once: what is asked for again may be read to another place.
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

// Of a context whose last run had other values of the symbols.
absl::Status Executor::SetShapes(const std::vector<int64_t>& units, Context* context) const {
  Shapes& shapes = context->shapes;
  if (shapes.units == units) return absl::OkStatus();
  shapes.units.clear();
  shapes.sizes.clear();
  shapes.strides.clear();
  shapes.offsets.clear();
  const std::vector<bool> launched = LaunchedKernels();
  for (size_t k = 0; k < plan_.kernels.size(); ++k) {
    const PlanKernel& kernel = plan_.kernels[k];
    std::vector<int64_t> sizes;
    for (const SizeExpr& size : kernel.sizes) {
      if (!launched[k]) break;
      std::optional<int64_t> value = size.Evaluate(units);
      if (!value.has_value()) {
        return InvalidArgument("executor: kernel ", kernel.symbol, ": size ", size.ToString(),
                               " is too large");
      }
      sizes.push_back(*value);
    }
    shapes.sizes.push_back(std::move(sizes));
  }
  for (const PlanTensor& t : plan_.tensors) {
    shapes.strides.push_back(StridesAt(t, units));
    shapes.offsets.push_back(OffsetAt(t, units));
  }
  RETURN_IF_ERROR(CheckWithinBound(plan_, units));
  if (!plan_.loops.empty()) RETURN_IF_ERROR(CheckLoops(plan_, units));
  shapes.steps = MakeSteps(plan_.launches, &shapes);
  size_t position = 0;
  for (size_t l = 0; l < plan_.launches.size(); ++l) {
    const PlanLaunch& launch = plan_.launches[l];
    context->table.args[l].args.dims = shapes.sizes[static_cast<size_t>(launch.kernel)].data();
    for (int t : launch.tensors) {
      context->table.elements[position] = ElementsAt(plan_.tensors[static_cast<size_t>(t)], units);
      context->table.tensors[position++].strides = shapes.strides[static_cast<size_t>(t)].data();
    }
  }
  RETURN_IF_ERROR(CheckAccesses(plan_.launches, shapes.steps, context->table));
  shapes.units = units;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<HostTensor>> Executor::MakeOutputs() const {
  std::vector<HostTensor> outputs;
  for (int id : plan_.outputs) {
    const PlanTensor& t = plan_.tensors[static_cast<size_t>(id)];
    ASSIGN_OR_RETURN(HostTensor output, HostTensor::Create(t.dtype, t.dims));
    outputs.push_back(std::move(output));
  }
  return outputs;
}

absl::StatusOr<std::vector<HostTensor>> Executor::MakeOutputs(
    const std::vector<const HostTensor*>& inputs, const SharedMemory* memory) const {
  RunBinding binding;
  RETURN_IF_ERROR(BindInputs(plan_, inputs, memory, &binding));
  std::vector<bool> shared(plan_.outputs.size(), false);
  for (size_t s = 0; memory != nullptr && s < plan_.shared_buffers.size(); ++s) {
    shared[static_cast<size_t>(plan_.shared_buffers[s].output)] = true;
  }
  std::vector<HostTensor> outputs(plan_.outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (shared[i]) continue;
    const PlanTensor& t = plan_.tensors[static_cast<size_t>(plan_.outputs[i])];
    ASSIGN_OR_RETURN(outputs[i], HostTensor::Create(t.dtype, DimsAt(t, binding.units)));
  }
  return outputs;
}

absl::StatusOr<std::vector<HostTensor>> Executor::Run(const std::vector<HostTensor>& inputs,
                                                      RunProfile* profile) {
  std::vector<const HostTensor*> in;
  for (const HostTensor& t : inputs) in.push_back(&t);
  ASSIGN_OR_RETURN(std::vector<HostTensor> outputs, MakeOutputs(in));
  std::vector<HostTensor*> out;
  for (HostTensor& t : outputs) out.push_back(&t);
  RETURN_IF_ERROR(RunInto(in, out, profile));
  RETURN_IF_ERROR(CutOutputs(plan_.output_extents, &outputs));
  return outputs;
}

absl::Status Executor::RunInto(const std::vector<const HostTensor*>& inputs,
                               const std::vector<HostTensor*>& outputs, RunProfile* profile) {
  if (!plan_.shared_buffers.empty()) {
    ASSIGN_OR_RETURN(SharedMemory memory, LoadSharedMemory(plan_, inputs));
    RETURN_IF_ERROR(RunShared(inputs, outputs, &memory, profile));
    return StoreRows(plan_, memory, outputs);
  }
  RunBinding binding;
  RETURN_IF_ERROR(BindInputs(plan_, inputs, nullptr, &binding));
  RETURN_IF_ERROR(BindOutputs(plan_, outputs, nullptr, &binding));
  return RunCopied(outputs, &binding, profile);
}

// What has strides is copied there and back: the caller's tensors are dense.
absl::Status Executor::RunCopied(const std::vector<HostTensor*>& outputs, RunBinding* binding,
                                 RunProfile* profile) {
  if (plan_.bound_strides.empty()) return RunBound(*binding, profile);
  RETURN_IF_ERROR(CopyToStrides(plan_, binding));
  RETURN_IF_ERROR(RunBound(*binding, profile));
  CopyFromStrides(plan_, outputs, *binding);
  return absl::OkStatus();
}

absl::Status Executor::RunInPlace(const std::vector<BoundTensor>& inputs,
                                  const std::vector<BoundTensor>& outputs, RunProfile* profile) {
  RunBinding binding;
  RETURN_IF_ERROR(BindInPlace(plan_, inputs, outputs, &binding));
  return RunBound(binding, profile);
}

absl::Status Executor::RunShared(const std::vector<const HostTensor*>& inputs,
                                 const std::vector<HostTensor*>& outputs, SharedMemory* memory,
                                 RunProfile* profile) {
  if (memory == nullptr) return InvalidArgument("executor: no memory is given for shared buffers");
  RunBinding binding;
  RETURN_IF_ERROR(BindInputs(plan_, inputs, memory, &binding));
  RETURN_IF_ERROR(BindOutputs(plan_, outputs, memory, &binding));
  RETURN_IF_ERROR(RunCopied(outputs, &binding, profile));
  for (size_t s = 0; s < plan_.shared_buffers.size(); ++s) {
    const auto dim = static_cast<size_t>(plan_.shared_buffers[s].dim);
    memory->rows[s] = binding.shared_outputs[s][dim];
  }
  return absl::OkStatus();
}

absl::Status Executor::RunBound(const RunBinding& binding, RunProfile* profile) {
  if (!ready_) return FailedPrecondition("executor: Prepare has not been called");
  if (const int variant = VariantAt(plan_, binding.units); variant >= 0) {
    absl::Status status = variants_[static_cast<size_t>(variant)]->RunBound(binding, profile);
    if (profile != nullptr) profile->variant = variant;
    if (std::optional<RunFault> fault = RunFaultOf(status)) {
      fault->variant = variant;
      SetRunFault(*fault, &status);
    }
    return status;
  }
  Nanoseconds begin = profile != nullptr ? options_.clock->Now() : Nanoseconds(0);
  bool sampled = false;
  ASSIGN_OR_RETURN(std::unique_ptr<Context> context, TakeContext(&sampled));
  const bool open = !plan_.symbols.empty();
  if (open) RETURN_IF_ERROR(SetShapes(binding.units, context.get()));
  std::vector<FusionTensor>& tensors = context->table.tensors;
  for (const Patch& p : input_patches_) tensors[p.position].data = binding.inputs[p.index].data;
  for (const Patch& p : output_patches_) {
    const int64_t offset =
        open ? context->shapes.offsets[p.tensor] : plan_.tensors[p.tensor].offset;
    tensors[p.position].data = binding.outputs[p.index].data + offset;
  }
  const bool timed = sampled || profile != nullptr;
  absl::Status status = plan_.loops.empty()
                            ? RunLaunches(plan_.launches, open ? context->shapes.steps : steps_,
                                          context->table, timed, context.get())
                            : RunInPasses(timed, binding, context.get());
  if (profile != nullptr && status.ok()) {
    const std::vector<Nanoseconds>& at = context->boundaries;
    profile->variant = -1;
    profile->launch_us.clear();
    for (size_t i = 1; i < at.size(); ++i) {
      profile->launch_us.push_back(ToMicroseconds(at[i] - at[i - 1]));
    }
    profile->total_us = ToMicroseconds(at.back() - begin);
  }
  context->fresh = false;
  GiveContext(std::move(context), status.ok(), sampled);
  return status;
}

// Every run takes the lock twice: memory is got before it and samples are put in order after it.
LatencySamples Executor::TakeSamples() {
  std::vector<float> memory;
  memory.reserve(sampled_values_);
  LatencyRows rows;
  {
    MutexLock lock(&mutex_);
    if (sampler_ == nullptr) return {};
    rows = sampler_->Take(std::move(memory));
  }
  return ByLaunch(rows);
}

void Executor::StopSampling() {
  MutexLock lock(&mutex_);
  if (sampler_ != nullptr) sampler_->Stop();
}

}  // namespace fusion
