#pragma once

#include <string>

#include "core/bundle/plan.h"
#include "core/device/device_spec.h"
#include "core/plan/planner.h"
#include "core/runtime/executor.h"
#include "core/schedule/lower.h"

namespace fusion {

/// A resolved built-in device spec.
DeviceSpec DeviceNamed(std::string_view name, int threads = 1);

/// Names of the generic specs that this machine runs, lowest ISA first.
std::vector<std::string> RunnableDevices();

/// A program all of whose ops are one group; inputs and weights alike are inputs of `program`.
struct WholeProgram {
  Program program;
  FusionGroup group;
};
absl::StatusOr<WholeProgram> AsOneGroup(const Program& program);

/// Generates, compiles and checks the kernel of a lowered group, and those that pack its weights,
/// with the product's toolchain and checker, whole outputs compared. An error carries schedule and
/// source.
absl::StatusOr<CheckReport> CheckLowered(const WholeProgram& whole, const Lowered& lowered,
                                         const DeviceSpec& device);

/// The kernels of a plan, compiled and loaded but not checked, by plan kernel.
absl::StatusOr<std::vector<std::shared_ptr<const LoadedKernel>>> CompileKernels(
    const PlannedModel& model, const DeviceSpec& device);

/// An executor for a plan and its kernels, not prepared yet.
absl::StatusOr<std::unique_ptr<Executor>> CompilePlan(const PlannedModel& model,
                                                      const DeviceSpec& device,
                                                      ExecutorOptions options = {});

}  // namespace fusion
