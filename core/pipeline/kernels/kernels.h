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
  /// PlanOptions::tenant; empty: shared. No binary differs for it; without it, how soon a kernel is
  /// there would tell one tenant what another one has.
  std::string tenant;
};

/// The full key; its SHA-256 names the kernel. Differs whenever a part differs.
std::string KernelKey(const KernelKeyParts& parts);

/// What of code generator and compiler can change a kernel of a device.
struct CodegenIdentity {
  int version = 0;
  std::string toolchain;
  bool debug = false;  // PlanOptions::debug
  bool guard = false;
  std::string tenant = {};
};

/// Of a device without a code generator in this build: nothing, its plans stay plans.
CodegenIdentity IdentifyCodegen(const DeviceSpec& device, const Toolchain& toolchain,
                                const PlanOptions& options);

/// OK if kernels for the device can be made: Unimplemented if this build has no code generator for
/// it, FailedPrecondition if its compiler does not know the instruction set.
absl::Status CanCompile(const DeviceSpec& device, const Toolchain& toolchain);

/// The kernels of a plan with key, symbol and source: what the workers are given.
struct NamedKernels {
  std::vector<CompileJob> jobs;  // by plan kernel
  /// Unimplemented for what the backend does not emit; by plan kernel.
  std::vector<absl::Status> refusals;
  int codegen_version = 0;  // 0: no code generator
  /// Of a family: why the variant that it was planned with cannot be made; empty: nothing failed.
  std::string no_variant;
};

/// Stands for the symbol in a source that is not named yet.
inline constexpr std::string_view kUnnamedSymbol = "fk_unnamed";
/// The source with the symbol in all its places.
std::string WithSymbol(std::string_view source, const std::string& symbol);

/// Gives a job its key, symbol, backend and ISA, and writes them into `planned`; `text` is what the
/// code is generated from (KernelKeyParts::schedule).
void NameKernel(const DeviceSpec& device, const CodegenIdentity& codegen, std::string text,
                CompileJob* job, PlanKernel* planned);

/// The job of one kernel of static shape, named, with its source unless `backend` is null or
/// refuses it.
CompileJob EmitKernel(const PlannedKernel& kernel, const DeviceSpec& device,
                      const CodegenIdentity& codegen, Numerics numerics, const Backend* backend,
                      PlanKernel* planned, absl::Status* refusal);

/// Names the kernels of `model` and generates their sources; writes key, symbol, backend and ISA
/// into model->plan.kernels. Without a code generator for the device there is no source. Pure; any
/// thread.
absl::StatusOr<NamedKernels> EmitKernels(const DeviceSpec& device, const CodegenIdentity& codegen,
                                         PlannedModel* model);

}  // namespace fusion
