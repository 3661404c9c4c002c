#include "core/runtime/executor.h"

#include <algorithm>
#include <utility>

#include "core/bundle/plan_loops.h"
#include "core/bundle/plan_variants.h"
#include "core/bundle/symbol_values.h"
#include "core/runtime/executor_parts.h"
#include "core/runtime/loop_walk.h"
#include "core/runtime/run_binding.h"

namespace fusion {

Executor::Executor(Plan plan, std::vector<std::shared_ptr<const LoadedKernel>> kernels,
                   ExecutorOptions options)
    : plan_(std::move(plan)), kernels_(std::move(kernels)), options_(std::move(options)) {}

Executor::~Executor() = default;

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

// `*timed`: whether to time the run that begins.
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

// Every run takes the lock twice, so memory is allocated before it and samples are sorted after it.
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
