#pragma once

#include <CLI/CLI.hpp>

#include "client/fusionctl/args/arguments.h"

namespace fusion {

// Commands for those who operate a service. Each adds itself and its options to `app`; parsing
// fills `a`, which must outlive `app`.
void AddEpochs(CLI::App* app, Arguments* a);
void AddToken(CLI::App* app, Arguments* a);
void AddStore(CLI::App* app, Arguments* a);

}  // namespace fusion
