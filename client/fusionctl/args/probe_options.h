#pragma once

#include <CLI/CLI.hpp>

#include "client/fusionctl/args/arguments.h"

namespace fusion {

// Constants of a CPU that are measured on it. `a` must outlive `app`.

/// The command probe.
void AddProbe(CLI::App* app, Arguments* a);
/// --device-constants, of commands that plan.
void AddDeviceConstants(CLI::App* app, Arguments* a);

}  // namespace fusion
