#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "tests/tools/stages.h"

namespace fusion {

/// StageOptions as words of a command line; fusion_opt and the golden tests share them.
struct StageArguments {
  std::string device = "generic-avx2";  // a built-in spec, or a JSON file
  int threads = 1;
  PlanOptions plan;
};

/// Adds --device, --threads, --fusion, --numerics, --memory-pressure and --compute-pressure to
/// `app`; `arguments` outlives it.
void AddStageArguments(CLI::App* app, StageArguments* arguments);

/// Finds the device. Errors name it.
absl::StatusOr<StageOptions> Resolve(const StageArguments& arguments);

}  // namespace fusion
