#include "core/pipeline/kernels.h"

#include "core/base/kernel_abi.h"

namespace fusion {

std::string KernelKey(const KernelKeyParts& parts) {
  FieldHasher h;
  h.Add("schedule", parts.schedule)
      .Add("backend", parts.backend)
      .Add("codegen", parts.codegen_version)
      .Add("abi", parts.abi_version)
      .Add("isa", IsaName(parts.isa))
      .Add("vector_bytes", parts.vector_bytes)
      .Add("toolchain", parts.toolchain);
  return h.bytes();
}

absl::StatusOr<NamedKernels> EmitKernels(const DeviceSpec& device, const Toolchain& toolchain,
                                         PlannedModel* model) {
  ASSIGN_OR_RETURN(const Backend* backend, FindBackend(device.backend));
  NamedKernels named;
  for (size_t k = 0; k < model->kernels.size(); ++k) {
    const PlannedKernel& kernel = model->kernels[k];
    PlanKernel& planned = model->plan.kernels[k];
    CompileJob job;
    job.full_key = KernelKey({.schedule = kernel.text,
                              .backend = device.backend,
                              .codegen_version = backend->version(),
                              .abi_version = FUSION_KERNEL_ABI_VERSION,
                              .isa = device.isa,
                              .vector_bytes = device.vector_bytes,
                              .toolchain = toolchain.KeyText(device.isa, model->plan.numerics)});
    job.key = Sha256(job.full_key);
    job.symbol = StrCat("fk_", job.key.ToHex().substr(0, 16));
    absl::StatusOr<KernelSource> source = backend->Emit(kernel.schedule, device, job.symbol);
    named.refusals.push_back(source.status());
    if (source.ok()) job.source = std::move(source->text);
    job.schedule = kernel.text;
    job.reference = ToString(kernel.reference);
    job.label = kernel.schedule.label;
    job.backend = device.backend;
    job.isa = device.isa;
    job.numerics = model->plan.numerics;
    planned.key = job.key;
    planned.symbol = job.symbol;
    planned.backend = device.backend;
    planned.isa = std::string(IsaName(device.isa));
    named.jobs.push_back(std::move(job));
  }
  return named;
}

}  // namespace fusion
