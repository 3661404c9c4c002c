#include "core/pipeline/kernels.h"

#include "core/base/kernel_abi.h"

namespace fusion {

std::string KernelKey(const KernelKeyParts& parts) {
  FieldHasher h;
  h.Add("schedule", parts.schedule)
      .Add("backend", parts.backend)
      .Add("codegen", parts.codegen_version)
      .Add("abi", parts.abi_version)
      .Add("isa", parts.isa)
      .Add("vector_bytes", parts.vector_bytes)
      .Add("toolchain", parts.toolchain);
  return h.bytes();
}

CodegenIdentity IdentifyCodegen(const DeviceSpec& device, const Toolchain& toolchain,
                                Numerics numerics) {
  absl::StatusOr<const Backend*> backend = FindBackend(device.backend);
  if (!backend.ok()) return {};
  return {(*backend)->version(), toolchain.KeyText(device.isa, numerics)};
}

absl::Status CanCompile(const DeviceSpec& device, const Toolchain& toolchain) {
  if (FindBackend(device.backend).ok()) return toolchain.SupportsIsa(device.isa);
  return Unimplemented("no code generator for target ", Quote(device.name),
                       ": plans only (PLAN_MODE_PLAN_ONLY, fusionctl --plan-only)");
}

absl::StatusOr<NamedKernels> EmitKernels(const DeviceSpec& device, const Toolchain& toolchain,
                                         PlannedModel* model) {
  absl::StatusOr<const Backend*> backend = FindBackend(device.backend);
  CodegenIdentity codegen = IdentifyCodegen(device, toolchain, model->plan.numerics);
  NamedKernels named;
  named.codegen_version = codegen.version;
  for (size_t k = 0; k < model->kernels.size(); ++k) {
    const PlannedKernel& kernel = model->kernels[k];
    PlanKernel& planned = model->plan.kernels[k];
    CompileJob job;
    job.full_key = KernelKey({.schedule = kernel.text,
                              .backend = device.backend,
                              .codegen_version = codegen.version,
                              .abi_version = FUSION_KERNEL_ABI_VERSION,
                              .isa = device.arch,
                              .vector_bytes = device.vector_bytes,
                              .toolchain = codegen.toolchain});
    job.key = Sha256(job.full_key);
    job.symbol = StrCat("fk_", job.key.ToHex().substr(0, 16));
    absl::Status refusal = absl::OkStatus();
    if (backend.ok()) {
      absl::StatusOr<KernelSource> source = (*backend)->Emit(kernel.schedule, device, job.symbol);
      refusal = source.status();
      if (source.ok()) job.source = std::move(source->text);
    }
    named.refusals.push_back(std::move(refusal));
    job.schedule = kernel.text;
    job.reference = ToString(kernel.reference);
    job.label = kernel.schedule.label;
    job.backend = device.backend;
    job.isa = device.isa;
    job.numerics = model->plan.numerics;
    planned.key = job.key;
    planned.symbol = job.symbol;
    planned.backend = device.backend;
    planned.isa = device.arch;
    named.jobs.push_back(std::move(job));
  }
  return named;
}

}  // namespace fusion
