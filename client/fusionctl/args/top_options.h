#pragma once

#include <CLI/CLI.hpp>

#include "client/fusionctl/args/arguments.h"

namespace fusion {

/// One line about the command top.
inline constexpr const char* kTopHelp =
    "what a service does now: calls, cache, queue, workers, the plans that take most";

/// The options of top, besides those of all commands.
void AddTopOptions(CLI::App* top, Arguments* a);

}  // namespace fusion
