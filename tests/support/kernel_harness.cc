#include "tests/support/kernel_harness.h"

#include <map>

#include "core/base/files/file.h"
#include "core/check/reference_checker.h"
#include "core/codegen/backend.h"
#include "core/compile/job_runner.h"
#include "core/compile/toolchain.h"
#include "tests/support/remembered_commands.h"

namespace fusion {
namespace {

// The steps of a worker, in this process. What compilers made before is not made again; every
// kernel is checked again.
class Workshop {
 public:
  static absl::StatusOr<Workshop*> Get() {
    static absl::StatusOr<Workshop*> workshop = Open();
    return workshop;
  }

  absl::StatusOr<CheckReport> Check(const Schedule& schedule, const KernelReference& reference,
                                    const DeviceSpec& device, bool guard) {
    ASSIGN_OR_RETURN(const Backend* backend, FindBackend("cpu"));
    ASSIGN_OR_RETURN(KernelSource source,
                     backend->Emit(schedule, device, "fk_test", {.guard = guard}));
    WorkerJob work = Job(schedule, source, device);
    work.job.reference = ToString(reference);
    const Digest digest = DigestOf(work);
    if (auto known = checked_.find(digest); known != checked_.end()) return known->second;
    ReferenceChecker checker({.points = 1e9});
    ASSIGN_OR_RETURN(WorkerResult result, Run(work, checker));
    return checked_.emplace(digest, result.check).first->second;
  }

  absl::StatusOr<std::shared_ptr<const LoadedKernel>> Compile(const Schedule& schedule,
                                                              const DeviceSpec& device,
                                                              bool guard) {
    ASSIGN_OR_RETURN(const Backend* backend, FindBackend("cpu"));
    ASSIGN_OR_RETURN(KernelSource source,
                     backend->Emit(schedule, device, "fk_test", {.guard = guard}));
    const WorkerJob work = Job(schedule, source, device);
    std::shared_ptr<const LoadedKernel>& kernel = compiled_[DigestOf(work)];
    if (kernel == nullptr) {
      ReferenceChecker checker;  // without a reference it looks at the descriptor only
      ASSIGN_OR_RETURN(WorkerResult result, Run(work, checker));
      ASSIGN_OR_RETURN(kernel, LoadKernel(device.backend, result.binary, source.symbol));
    }
    return kernel;
  }

 private:
  // Of all that a job's result depends on: what packs weights, for one, many kernels have in
  // common.
  static Digest DigestOf(const WorkerJob& work) {
    const std::string argv = StrJoin(work.compile_argv, "\n");
    return Sha256({argv, work.job.source, work.job.schedule, work.job.reference});
  }

  WorkerJob Job(const Schedule& schedule, const KernelSource& source, const DeviceSpec& device) {
    WorkerJob work;
    work.job.symbol = source.symbol;
    work.job.backend = device.backend;
    work.job.source = source.text;
    work.job.scratch_bytes = source.scratch_bytes;
    work.job.workspace_bytes = source.workspace_bytes;
    work.job.schedule = ToString(schedule);
    work.job.isa = device.isa;
    work.job.numerics = schedule.bitwise ? Numerics::kBitwise : Numerics::kFp32Accumulate;
    work.compile_argv = toolchain_.CompileArgv(device.isa, work.job.numerics);
    work.link_argv = toolchain_.LinkArgv();
    return work;
  }

  absl::StatusOr<WorkerResult> Run(const WorkerJob& work, KernelChecker& checker) {
    JobRunner jobs(dir_.path(), *runner_, checker, [](std::string_view) {});
    WorkerResult result = jobs.Run(work);
    if (result.status.ok()) return result;
    return Annotate(result.status, StrCat(result.log, "\n", work.job.schedule, work.job.reference,
                                          work.job.source));
  }

  Workshop(TempDir dir, std::unique_ptr<CommandRunner> runner, Toolchain toolchain)
      : dir_(std::move(dir)), runner_(std::move(runner)), toolchain_(std::move(toolchain)) {}

  static absl::StatusOr<Workshop*> Open() {
    ASSIGN_OR_RETURN(TempDir dir, TempDir::Create("/tmp", "kernels-"));
    std::unique_ptr<CommandRunner> runner = MakeProcessRunner(FUSION_EXEC);
    ToolchainOptions options;
    options.scratch_dir = dir.path();
    ASSIGN_OR_RETURN(Toolchain toolchain, Toolchain::Open(options, *runner));
    runner = RememberCommands(std::move(runner), toolchain.identity(), FUSION_TEST_KERNELS);
    static std::unique_ptr<Workshop> workshop(
        new Workshop(std::move(dir), std::move(runner), std::move(toolchain)));
    return workshop.get();
  }

  TempDir dir_;
  std::unique_ptr<CommandRunner> runner_;
  Toolchain toolchain_;
  std::map<Digest, CheckReport> checked_;
  std::map<Digest, std::shared_ptr<const LoadedKernel>> compiled_;
};

}  // namespace

absl::StatusOr<CheckReport> CheckLowered(const WholeProgram& whole, const Lowered& lowered,
                                         const DeviceSpec& device, bool guard) {
  ASSIGN_OR_RETURN(Workshop * workshop, Workshop::Get());
  for (size_t p = 0; p < lowered.params.size(); ++p) {
    if (!lowered.params[p].packed) continue;
    RETURN_IF_ERROR(workshop
                        ->Check(PackSchedule(whole.group, lowered, p),
                                MakePackReference(whole.group, lowered, p), device, guard)
                        .status());
  }
  return workshop->Check(lowered.schedule, MakeReference(whole.program, whole.group, lowered),
                         device, guard);
}

absl::StatusOr<std::vector<std::shared_ptr<const LoadedKernel>>> CompileKernels(
    const PlannedModel& model, const DeviceSpec& device, bool guard) {
  ASSIGN_OR_RETURN(Workshop * workshop, Workshop::Get());
  std::vector<std::shared_ptr<const LoadedKernel>> kernels;
  for (const PlannedKernel& kernel : model.kernels) {
    ASSIGN_OR_RETURN(kernels.emplace_back(), workshop->Compile(kernel.schedule, device, guard));
  }
  return kernels;
}

absl::StatusOr<std::unique_ptr<Executor>> CompilePlan(const PlannedModel& model,
                                                      const DeviceSpec& device,
                                                      ExecutorOptions options, bool guard) {
  ASSIGN_OR_RETURN(auto kernels, CompileKernels(model, device, guard));
  Plan plan = model.plan;
  for (size_t k = 0; k < kernels.size(); ++k) {  // as the service does when it emits them
    plan.kernels[k].scratch_bytes = static_cast<int64_t>(kernels[k]->descriptor().scratch_bytes);
    plan.kernels[k].workspace_bytes =
        static_cast<int64_t>(kernels[k]->descriptor().workspace_bytes);
  }
  return Executor::Create(std::move(plan), std::move(kernels), std::move(options));
}

absl::StatusOr<std::vector<HostTensor>> CompileAndRun(const PlannedModel& model,
                                                      const DeviceSpec& device,
                                                      const PlanValues& values, bool guard) {
  ASSIGN_OR_RETURN(std::unique_ptr<Executor> executor, CompilePlan(model, device, {}, guard));
  RETURN_IF_ERROR(
      executor->Prepare([&](int i) { return &values.weights[static_cast<size_t>(i)]; }));
  return executor->Run(values.inputs);
}

}  // namespace fusion
