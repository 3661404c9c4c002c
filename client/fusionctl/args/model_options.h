#pragma once

#include <CLI/CLI.hpp>

#include "client/fusionctl/args/arguments.h"

namespace fusion {

// Options that commands about a model share.

/// The file.
void AddModel(CLI::App* app, Arguments* a);
/// Of a command that also takes a stored kernel.
void AddModelOrKernel(CLI::App* app, Arguments* a);
/// How it is planned.
void AddPlanOptions(CLI::App* app, Arguments* a, bool with_isa);
/// For which device. Behind AddPlanOptions with an ISA.
void AddTarget(CLI::App* app, Arguments* a);
/// What it runs on.
void AddDataOptions(CLI::App* app, Arguments* a);

}  // namespace fusion
