#include "core/pipeline/kernels/kernels.h"

#include "core/base/kernel_abi.h"
#include "core/codegen/registered_source.h"

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
  if (parts.guard) h.Add("guard", parts.guard);
  if (!parts.tenant.empty()) h.Add("tenant", parts.tenant);
  return h.bytes();
}

CodegenIdentity IdentifyCodegen(const DeviceSpec& device, const Toolchain& toolchain,
                                const PlanOptions& options) {
  absl::StatusOr<const Backend*> backend = FindBackend(device.backend);
  if (!backend.ok()) return {};
  return {.version = (*backend)->version(),
          .toolchain = toolchain.KeyText(device.isa, options.numerics, options.debug),
          .debug = options.debug,
          .guard = options.guard,
          .tenant = options.tenant};
}

absl::Status CanCompile(const DeviceSpec& device, const Toolchain& toolchain) {
  if (FindBackend(device.backend).ok()) return toolchain.SupportsIsa(device.isa);
  return Unimplemented("no code generator for target ", Quote(device.name),
                       ": plans only (PLAN_MODE_PLAN_ONLY, fusionctl --plan-only)");
}

std::string WithSymbol(std::string_view source, const std::string& symbol) {
  std::string out;
  for (;;) {
    const size_t at = source.find(kUnnamedSymbol);
    out += source.substr(0, at);
    if (at == std::string_view::npos) return out;
    out += symbol;
    source.remove_prefix(at + kUnnamedSymbol.size());
  }
}

void NameKernel(const DeviceSpec& device, const CodegenIdentity& codegen, std::string text,
                CompileJob* job, PlanKernel* planned) {
  job->full_key = KernelKey({.schedule = std::move(text),
                             .backend = device.backend,
                             .codegen_version = codegen.version,
                             .abi_version = FUSION_KERNEL_ABI_VERSION,
                             .isa = device.arch,
                             .vector_bytes = device.vector_bytes,
                             .toolchain = codegen.toolchain,
                             .guard = codegen.guard,
                             .tenant = codegen.tenant});
  job->key = Sha256(job->full_key);
  job->symbol = StrCat("fk_", job->key.ToHex().substr(0, 16));
  job->backend = device.backend;
  job->isa = device.isa;
  job->debug = codegen.debug;
  planned->key = job->key;
  planned->symbol = job->symbol;
  planned->backend = device.backend;
  planned->isa = device.arch;
}

namespace {

std::string SourceOf(const RegisteredMatch& match, const DeviceSpec& device,
                     const std::string& symbol) {
  std::vector<std::pair<std::string, std::string>> constants;
  for (size_t i = 0; i < match.constants.size(); ++i) {
    constants.emplace_back(match.kernel->constants[i].name, match.constants[i]);
  }
  return RegisteredSource(match.kernel->source, device, symbol, constants);
}

}  // namespace

CompileJob EmitKernel(const PlannedKernel& kernel, const DeviceSpec& device,
                      const CodegenIdentity& codegen, Numerics numerics, const Backend* backend,
                      PlanKernel* planned, absl::Status* refusal) {
  CompileJob job;
  NameKernel(device, codegen, kernel.text, &job, planned);
  if (kernel.registered != nullptr) {
    job.registered = kernel.registered->kernel->name();
    job.source = SourceOf(*kernel.registered, device, job.symbol);
    planned->scratch_bytes = kernel.registered->scratch_bytes;
    planned->workspace_bytes = kernel.registered->workspace_bytes;
  } else if (backend != nullptr) {
    absl::StatusOr<KernelSource> source =
        backend->Emit(kernel.schedule, device, job.symbol, {.guard = codegen.guard});
    *refusal = source.status();
    if (source.ok()) {
      job.source = std::move(source->text);
      planned->scratch_bytes = source->scratch_bytes;
      planned->workspace_bytes = source->workspace_bytes;
    }
  }
  job.scratch_bytes = planned->scratch_bytes;
  job.workspace_bytes = planned->workspace_bytes;
  job.schedule = kernel.text;
  job.reference = ToString(kernel.reference);
  job.label = kernel.schedule.label;
  job.numerics = numerics;
  return job;
}

absl::StatusOr<NamedKernels> EmitKernels(const DeviceSpec& device, const CodegenIdentity& codegen,
                                         PlannedModel* model) {
  absl::StatusOr<const Backend*> backend = FindBackend(device.backend);
  NamedKernels named;
  named.codegen_version = codegen.version;
  for (size_t k = 0; k < model->kernels.size(); ++k) {
    absl::Status refusal = absl::OkStatus();
    named.jobs.push_back(EmitKernel(model->kernels[k], device, codegen, model->plan.numerics,
                                    backend.ok() ? *backend : nullptr, &model->plan.kernels[k],
                                    &refusal));
    named.refusals.push_back(std::move(refusal));
  }
  return named;
}

}  // namespace fusion
