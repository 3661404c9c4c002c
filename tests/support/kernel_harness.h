#pragma once

#include "core/bundle/plan.h"
#include "core/plan/planner.h"
#include "core/runtime/executor.h"
#include "tests/support/plan_interpreter.h"
#include "tests/support/whole_program.h"

namespace fusion {

/// Generates, compiles and checks the kernel of a lowered group, and those that pack its weights,
/// with the product's toolchain and checker, whole outputs compared. An error carries schedule and
/// source. `guard`: as EmitOptions::guard, here and below.
absl::StatusOr<CheckReport> CheckLowered(const WholeProgram& whole, const Lowered& lowered,
                                         const DeviceSpec& device, bool guard = false);

/// The kernels of a plan, compiled and loaded but not checked, by plan kernel.
absl::StatusOr<std::vector<std::shared_ptr<const LoadedKernel>>> CompileKernels(
    const PlannedModel& model, const DeviceSpec& device, bool guard = false);

/// An executor for a plan and its kernels, not prepared yet.
absl::StatusOr<std::unique_ptr<Executor>> CompilePlan(const PlannedModel& model,
                                                      const DeviceSpec& device,
                                                      ExecutorOptions options = {},
                                                      bool guard = false);

/// What the kernels of a plan make of these values: by plan output.
absl::StatusOr<std::vector<HostTensor>> CompileAndRun(const PlannedModel& model,
                                                      const DeviceSpec& device,
                                                      const PlanValues& values, bool guard = false);

}  // namespace fusion
