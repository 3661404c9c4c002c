#pragma once

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/output/terminal.h"
#include "core/base/status.h"

namespace fusion {

/// report --post: sends the reports of arguments.post to the service and prints what became of
/// them. kExitBadInput if any was refused. Nothing is sent if the file is malformed.
absl::StatusOr<ExitCode> PostReports(const Arguments& arguments, Progress* progress);

}  // namespace fusion
