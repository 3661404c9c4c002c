#pragma once

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/input/model_file.h"
#include "client/fusionctl/measure/contender.h"
#include "client/fusionctl/output/terminal.h"

namespace fusion {

/// True if a run of --cache, --user-cache or --fallback is asked for.
bool IsResilient(const Arguments& arguments);

/// fusionctl run that goes on without the service: by the plan in the cache, or op by op.
absl::StatusOr<ExitCode> RunResilient(const Arguments& arguments, const ModelFile& file,
                                      const RunInputs& inputs, Progress* progress);

}  // namespace fusion
