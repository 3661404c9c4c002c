#include <charconv>

#include "core/runtime/executor_parts.h"
#include "core/runtime/run_binding.h"

namespace fusion {
namespace {

// In the payload of a fault's status: which of the launch's tensors, -1 for a buffer of the kernel.
constexpr char kFaultTensor[] = "fusion.kernel_fault.tensor";
// The same as a RunFault: "GROUP TENSOR VARIANT".
constexpr char kRunFault[] = "fusion.run_fault";

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

void SetRunFault(const RunFault& fault, absl::Status* status) {
  status->SetPayload(kRunFault,
                     absl::Cord(StrCat(fault.group, " ", fault.tensor, " ", fault.variant)));
}

void Executor::PhaseRun::Do(int64_t begin, int64_t end, int worker) {
  if (failed.load(std::memory_order_relaxed)) return;  // nobody will read what this computes
  absl::Status status = RunTasks(*kernel, *args, phase, begin, end, worker);
  if (status.ok()) return;
  MutexLock lock(&mutex);
  if (first.ok()) first = std::move(status);
  failed.store(true, std::memory_order_relaxed);
}

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

}  // namespace fusion
