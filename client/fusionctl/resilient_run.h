#pragma once

#include "client/fusionctl/contender.h"

namespace fusion {

/// True if a run of --cache, --user-cache or --fallback is asked for.
bool IsResilient(const Arguments& arguments);

/// fusionctl run that goes on without the service: by the plan in the cache, or op by op.
absl::StatusOr<ExitCode> RunResilient(const Arguments& arguments, const ModelFile& file,
                                      const RunInputs& inputs, Progress* progress);

}  // namespace fusion
