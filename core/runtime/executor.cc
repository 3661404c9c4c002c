#include "core/runtime/executor.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>

namespace fusion {
namespace {

constexpr uint64_t kPage = 4096;

double MicrosecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
      .count();
}

}  // namespace

// Page-aligned bytes.
struct Executor::Memory {
  static absl::StatusOr<Memory> Allocate(uint64_t bytes, std::string_view what) {
    Memory memory;
    uint64_t rounded = (bytes / kPage + 1) * kPage;
    if (rounded <= static_cast<uint64_t>(MachineMemoryBytes())) {
      memory.data.reset(std::aligned_alloc(kPage, rounded));
    }
    if (memory.data == nullptr) {
      return ResourceExhausted("executor: no memory for ", bytes, " bytes of ", what);
    }
    return memory;
  }
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  std::unique_ptr<void, Free> data;

  void* At(int64_t offset) const { return static_cast<char*>(data.get()) + offset; }
};

// What one run needs for itself.
struct Executor::Context {
  Memory arena;
  Memory scratch_area;
  Memory workspace;
};

Executor::Executor(Plan plan, std::vector<std::shared_ptr<const LoadedKernel>> kernels,
                   ExecutorOptions options)
    : plan_(std::move(plan)), kernels_(std::move(kernels)), options_(std::move(options)) {}

Executor::~Executor() = default;

absl::StatusOr<std::unique_ptr<Executor>> Executor::Create(
    Plan plan, std::vector<std::shared_ptr<const LoadedKernel>> kernels, ExecutorOptions options) {
  RETURN_IF_ERROR(Verify(plan));
  if (options.parallel_tasks && options.workers < 1) {
    return InvalidArgument("executor: parallel_tasks is given without its number of workers");
  }
  std::unique_ptr<Executor> executor(
      new Executor(std::move(plan), std::move(kernels), std::move(options)));
  RETURN_IF_ERROR(executor->CheckKernels());
  if (executor->options_.parallel_tasks) {
    executor->workers_ = executor->options_.workers;
  } else {
    int threads =
        executor->options_.threads > 0 ? executor->options_.threads : executor->plan_.threads;
    executor->pool_ = std::make_unique<TaskPool>(threads);
    executor->workers_ = executor->pool_->threads();
  }
  for (const auto& kernel : executor->kernels_) {
    const FusionKernelDescriptor& d = kernel->descriptor();
    uint64_t stride =
        (d.scratch_bytes / kPage + 1) * kPage + 64;  // neighbours start in different cache sets
    executor->scratch_stride_ = std::max(executor->scratch_stride_, stride);
    executor->workspace_bytes_ = std::max<uint64_t>(executor->workspace_bytes_, d.workspace_bytes);
  }
  ASSIGN_OR_RETURN(
      Memory prepared,
      Memory::Allocate(static_cast<uint64_t>(executor->plan_.prepared_bytes), "prepared weights"));
  executor->prepared_ = std::make_unique<Memory>(std::move(prepared));
  executor->weights_.resize(executor->plan_.weights.size(), nullptr);
  return executor;
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
    if (kernels_[i]->descriptor().dims != 0) {
      return Unimplemented("executor: kernel ", plan_.kernels[i].symbol, " takes ",
                           kernels_[i]->descriptor().dims,
                           " run-time dims; only kernels of static shape can be run");
    }
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

absl::StatusOr<std::unique_ptr<Executor::Context>> Executor::TakeContext() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Context> context = std::move(idle_.back());
      idle_.pop_back();
      return context;
    }
  }
  auto context = std::make_unique<Context>();
  ASSIGN_OR_RETURN(context->arena, Memory::Allocate(static_cast<uint64_t>(plan_.arena_bytes),
                                                    "intermediate tensors"));
  ASSIGN_OR_RETURN(
      context->scratch_area,
      Memory::Allocate(scratch_stride_ * static_cast<uint64_t>(workers_), "kernel scratch"));
  ASSIGN_OR_RETURN(context->workspace, Memory::Allocate(workspace_bytes_, "kernel workspace"));
  return context;
}

void Executor::GiveContext(std::unique_ptr<Context> context) {
  std::lock_guard<std::mutex> lock(mutex_);
  idle_.push_back(std::move(context));
}

void* Executor::Place(const PlanTensor& tensor, const std::vector<void*>& inputs,
                      const std::vector<void*>& outputs, Context* context) const {
  auto index = static_cast<size_t>(tensor.index);
  switch (tensor.space) {
    case Space::kInput:
      return index < inputs.size() ? inputs[index] : nullptr;
    case Space::kOutput:
      return index < outputs.size() ? outputs[index] : nullptr;
    case Space::kWeight:
      return const_cast<std::byte*>(weights_[index]);
    case Space::kConstant:
      return const_cast<std::byte*>(plan_.constants[index]->bytes());
    case Space::kPrepared:
      return prepared_->At(tensor.offset);
    case Space::kArena:
      return context->arena.At(tensor.offset);
  }
  return nullptr;
}

absl::Status Executor::Launch(const PlanLaunch& launch, const std::vector<void*>& base,
                              Context* context) {
  std::vector<FusionTensor> tensors;
  for (int t : launch.tensors) {
    const PlanTensor& tensor = plan_.tensors[static_cast<size_t>(t)];
    tensors.push_back({base[static_cast<size_t>(t)], tensor.strides.data()});
  }
  const LoadedKernel& kernel = *kernels_[static_cast<size_t>(launch.kernel)];
  FusionKernelArgs args{
      sizeof(FusionKernelArgs),      FUSION_KERNEL_ABI_VERSION,        tensors.data(), nullptr,
      context->workspace.data.get(), context->scratch_area.data.get(), scratch_stride_};
  const FusionKernelDescriptor& d = kernel.descriptor();
  for (int phase = 0; phase < d.phases; ++phase) {
    std::mutex mutex;
    absl::Status first = absl::OkStatus();
    TaskBody body = [&](int64_t begin, int64_t end, int worker) {
      absl::Status status = kernel.Run(args, phase, begin, end, worker);
      if (status.ok()) return;
      std::lock_guard<std::mutex> lock(mutex);
      if (first.ok()) first = std::move(status);
    };
    int64_t tasks = d.tasks(phase, nullptr);
    if (pool_) {
      pool_->Run(tasks, body);
    } else if (tasks > 0) {
      options_.parallel_tasks(tasks, body);
    }
    if (!first.ok()) {
      return Annotate(first,
                      StrCat("kernel ", plan_.kernels[static_cast<size_t>(launch.kernel)].symbol));
    }
  }
  return absl::OkStatus();
}

absl::Status Executor::Prepare(
    const std::function<absl::StatusOr<const HostTensor*>(int)>& weight) {
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
  ASSIGN_OR_RETURN(std::unique_ptr<Context> context, TakeContext());
  std::vector<void*> base;
  for (const PlanTensor& t : plan_.tensors) base.push_back(Place(t, {}, {}, context.get()));
  for (const PlanLaunch& launch : plan_.prepare) {
    RETURN_IF_ERROR(Launch(launch, base, context.get()));
  }
  GiveContext(std::move(context));
  ready_ = true;
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

absl::StatusOr<std::vector<HostTensor>> Executor::Run(const std::vector<HostTensor>& inputs,
                                                      RunProfile* profile) {
  ASSIGN_OR_RETURN(std::vector<HostTensor> outputs, MakeOutputs());
  std::vector<const HostTensor*> in;
  std::vector<HostTensor*> out;
  for (const HostTensor& t : inputs) in.push_back(&t);
  for (HostTensor& t : outputs) out.push_back(&t);
  RETURN_IF_ERROR(RunInto(in, out, profile));
  return outputs;
}

absl::Status Executor::RunInto(const std::vector<const HostTensor*>& inputs,
                               const std::vector<HostTensor*>& outputs, RunProfile* profile) {
  if (!ready_) return FailedPrecondition("executor: Prepare has not been called");
  if (inputs.size() != plan_.inputs.size() || outputs.size() != plan_.outputs.size()) {
    return InvalidArgument("executor: ", inputs.size(), " inputs and ", outputs.size(),
                           " outputs given, the plan has ", plan_.inputs.size(), " and ",
                           plan_.outputs.size());
  }
  auto check = [&](const HostTensor& given, int id, std::string_view what, size_t i) {
    if (id < 0) return absl::OkStatus();
    const PlanTensor& t = plan_.tensors[static_cast<size_t>(id)];
    if (given.dtype() == t.dtype && given.dims() == t.dims) return absl::OkStatus();
    return InvalidArgument(what, " ", i, " is ", DTypeName(given.dtype()),
                           DimsToString(given.dims()), ", expected ", DTypeName(t.dtype),
                           DimsToString(t.dims));
  };
  std::vector<void*> in;
  std::vector<void*> out;
  for (size_t i = 0; i < inputs.size(); ++i) {
    RETURN_IF_ERROR(check(*inputs[i], plan_.inputs[i], "input", i));
    in.push_back(const_cast<std::byte*>(inputs[i]->bytes()));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    RETURN_IF_ERROR(check(*outputs[i], plan_.outputs[i], "output", i));
    out.push_back(outputs[i]->bytes());
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Context> context, TakeContext());
  std::vector<void*> base;
  for (const PlanTensor& t : plan_.tensors) base.push_back(Place(t, in, out, context.get()));
  auto begin = std::chrono::steady_clock::now();
  absl::Status status = absl::OkStatus();
  if (profile != nullptr) profile->launch_us.clear();
  for (const PlanLaunch& launch : plan_.launches) {
    auto launched = std::chrono::steady_clock::now();
    status = Launch(launch, base, context.get());
    if (!status.ok()) break;
    if (profile != nullptr) profile->launch_us.push_back(MicrosecondsSince(launched));
  }
  if (profile != nullptr) profile->total_us = MicrosecondsSince(begin);
  GiveContext(std::move(context));
  return status;
}

}  // namespace fusion
