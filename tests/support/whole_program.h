#pragma once

#include <string>
#include <vector>

#include "core/device/device_spec.h"
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

}  // namespace fusion
