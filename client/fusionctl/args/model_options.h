#pragma once

#include <CLI/CLI.hpp>

#include "client/fusionctl/args/arguments.h"

namespace fusion {

// Options that several commands about a model share. `a` must outlive `app`.

/// The model file.
void AddModel(CLI::App* app, Arguments* a);
/// The model file, or the key of a stored kernel.
void AddModelOrKernel(CLI::App* app, Arguments* a);
/// Options of planning; --isa only if `with_isa`.
void AddPlanOptions(CLI::App* app, Arguments* a, bool with_isa);
/// --target. Call it after AddPlanOptions with `with_isa`.
void AddTarget(CLI::App* app, Arguments* a);
/// Options of the input data of a run.
void AddDataOptions(CLI::App* app, Arguments* a);

}  // namespace fusion
