#pragma once

#include <string>
#include <vector>

#include "core/device/device_spec.h"
#include "core/schedule/lower/lower.h"

namespace fusion {

/// A resolved built-in device spec.
DeviceSpec DeviceNamed(std::string_view name, int threads = 1);

/// Names of the generic specs that this machine runs, lowest ISA first.
std::vector<std::string> RunnableDevices();
/// The same with those that differ in products of bf16 only.
std::vector<std::string> EveryRunnableDevice();
/// Those of `devices`, lowest ISA first, that this case is tested on in this run: the first and the
/// last always, each of the others in one of three runs. $FUSION_ISA_TURN is the number of the run;
/// without it: all of them.
std::vector<std::string> InTurn(std::vector<std::string> devices, std::string_view case_name);

/// A program all of whose ops are one group; inputs and weights alike are inputs of `program`.
struct WholeProgram {
  Program program;
  FusionGroup group;
};
absl::StatusOr<WholeProgram> AsOneGroup(const Program& program);

}  // namespace fusion
