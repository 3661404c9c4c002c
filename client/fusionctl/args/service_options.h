#pragma once

#include "client/fusionctl/args/arguments.h"

namespace fusion {

/// Adds the options of every command that uses a service: which one, how to connect to it, the
/// embedded fusiond, and the form of the output.
void AddServiceOptions(CLI::App* app, Arguments* a);

}  // namespace fusion
