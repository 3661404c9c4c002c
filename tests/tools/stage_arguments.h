#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "tests/tools/stages.h"

namespace fusion {

/// StageOptions as words of a command line; fusion_opt and the golden tests share them.
struct StageArguments {
  std::string device = "generic-avx2";  // a built-in spec, or a JSON file
  int threads = 1;
  // Cache sizes of the target in bytes; 0: those of the spec.
  int64_t l1_bytes = 0;
  int64_t l2_bytes = 0;
  int64_t l3_bytes = 0;
  PlanOptions plan;
  std::string rules;  // file in text format; empty: none
};

/// Adds --device, --threads, --l1-bytes, --l2-bytes, --l3-bytes, --fusion, --numerics,
/// --memory-pressure, --compute-pressure, --low-latency and --rules to `app`; `arguments` outlives
/// it.
void AddStageArguments(CLI::App* app, StageArguments* arguments);

/// Finds the device and reads the rules. Errors name them.
absl::StatusOr<StageOptions> Resolve(const StageArguments& arguments);

}  // namespace fusion
