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
  Isa isa = Isa::kX86V2;
  int vector_bytes = 0;
  std::string toolchain;  // Toolchain::KeyText
};

/// The full key; its SHA-256 names the kernel. Differs whenever a part differs.
std::string KernelKey(const KernelKeyParts& parts);

/// The kernels of a plan with key, symbol and source: what the workers are given.
struct NamedKernels {
  std::vector<CompileJob> jobs;  // by plan kernel
  /// Unimplemented for what the backend does not emit; by plan kernel.
  std::vector<absl::Status> refusals;
};

/// Names the kernels of `model` and generates their sources; writes key, symbol, backend and ISA
/// into model->plan.kernels. Pure; any thread. Unimplemented if there is no such backend.
absl::StatusOr<NamedKernels> EmitKernels(const DeviceSpec& device, const Toolchain& toolchain,
                                         PlannedModel* model);

}  // namespace fusion
