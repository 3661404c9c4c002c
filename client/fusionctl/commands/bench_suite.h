#pragma once

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/output/terminal.h"
#include "core/base/status.h"

namespace fusion {

/// fusionctl bench --suite: what fusion gains for each of SuiteModels, with one thread and with
/// all.
absl::StatusOr<ExitCode> RunBenchSuite(const Arguments& arguments, Progress* progress);

}  // namespace fusion
