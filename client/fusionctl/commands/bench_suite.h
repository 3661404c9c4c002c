#pragma once

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/output/terminal.h"
#include "core/base/status.h"

namespace fusion {

/// fusionctl bench --suite: measures fused against op by op for each of SuiteModels, with one
/// thread and with all, or with --threads.
absl::StatusOr<ExitCode> RunBenchSuite(const Arguments& arguments, Progress* progress);

}  // namespace fusion
