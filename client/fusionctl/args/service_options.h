#pragma once

#include <CLI/CLI.hpp>

#include "client/fusionctl/args/arguments.h"

namespace fusion {

/// Adds a command without a service, with --json. `a` must outlive `app`.
CLI::App* AddLocalCommand(CLI::App* app, const char* name, const char* help, Arguments* a,
                          CommandKind kind);
/// Adds a command with the options for reaching a service, or for starting an embedded one.
CLI::App* AddCommand(CLI::App* app, const char* name, const char* help, Arguments* a,
                     CommandKind kind);

}  // namespace fusion
