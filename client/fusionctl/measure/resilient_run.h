#pragma once

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/input/model_file.h"
#include "client/fusionctl/measure/contender.h"
#include "client/fusionctl/output/terminal.h"

namespace fusion {

/// Whether --cache, --user-cache or --fallback is given.
bool IsResilient(const Arguments& arguments);

/// fusionctl run that also works without the service: with a cached plan, or op by op. Requires
/// IsResilient(arguments).
absl::StatusOr<ExitCode> RunResilient(const Arguments& arguments, const ModelFile& file,
                                      const RunInputs& inputs, Progress* progress);

}  // namespace fusion
