#pragma once

#include <string>
#include <vector>

#include "core/codegen/backend.h"
#include "core/compile/compile_job.h"
#include "core/compile/toolchain.h"
#include "core/plan/planner.h"

namespace fusion {

/// Everything that can change the binary of a kernel.
struct KernelKeyParts {
  std::string schedule;  // text form
  std::string backend;
  int codegen_version = 0;
  int abi_version = 0;
  std::string isa;  // DeviceSpec::arch
  int vector_bytes = 0;
  std::string toolchain;  // Toolchain::KeyText
  bool guard = false;     // EmitOptions::guard
  /// PlanOptions::tenant; empty: shared. It changes no binary. It is part of the key because
  /// otherwise the build time would tell a tenant which kernels another tenant has.
  std::string tenant;
};

/// The full key; its SHA-256 names the kernel. Differs whenever a part differs.
std::string KernelKey(const KernelKeyParts& parts);

/// The properties of code generator and compiler that can change a kernel of a device.
struct CodegenIdentity {
  int version = 0;
  std::string toolchain;
  bool debug = false;  // PlanOptions::debug
  bool guard = false;
  std::string tenant = {};
};

/// Default-constructed for a device without a code generator in this build: its plans have no
/// kernels.
CodegenIdentity IdentifyCodegen(const DeviceSpec& device, const Toolchain& toolchain,
                                const PlanOptions& options);

/// OK if kernels for the device can be made. Unimplemented if this build has no code generator for
/// it, FailedPrecondition if the compiler does not know its instruction set.
absl::Status CanCompile(const DeviceSpec& device, const Toolchain& toolchain);

/// The compile jobs of a plan's kernels, with key, symbol and source.
struct NamedKernels {
  std::vector<CompileJob> jobs;  // by plan kernel
  /// By plan kernel: OK, or Unimplemented if the backend cannot generate it.
  std::vector<absl::Status> refusals;
  int codegen_version = 0;  // 0: no code generator
  /// Of a family: why the planned variant cannot be made; empty: it can, or there is none.
  std::string no_variant;
};

/// Stands for the symbol of a kernel in its source, until the key is known.
inline constexpr std::string_view kUnnamedSymbol = "fk_unnamed";
/// Replaces every kUnnamedSymbol by `symbol`.
std::string WithSymbol(std::string_view source, const std::string& symbol);

/// Sets key, symbol, backend and ISA of `job` and `planned`. `text` is what the code is generated
/// from (KernelKeyParts::schedule).
void NameKernel(const DeviceSpec& device, const CodegenIdentity& codegen, std::string text,
                CompileJob* job, PlanKernel* planned);

/// The compile job of one kernel of static shape, with key and symbol. The source is empty if
/// `backend` is null or refuses it (`*refusal`).
CompileJob EmitKernel(const PlannedKernel& kernel, const DeviceSpec& device,
                      const CodegenIdentity& codegen, Numerics numerics, const Backend* backend,
                      PlanKernel* planned, absl::Status* refusal);

/// Sets the keys of the kernels of `model` and generates their sources; writes key, symbol, backend
/// and ISA into model->plan.kernels. Without a code generator for the device the sources are empty.
/// A kernel that cannot be generated is no error, see NamedKernels::refusals. Pure; any thread.
absl::StatusOr<NamedKernels> EmitKernels(const DeviceSpec& device, const CodegenIdentity& codegen,
                                         PlannedModel* model);

}  // namespace fusion
