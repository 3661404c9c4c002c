#pragma once

#include "absl/status/status.h"

namespace fusion {

// What the status of a CompileResult, a race or a code generator says about the kernel.

/// True for failures of a kernel itself, which would recur: it cannot be generated, does not
/// compile, fails its check, kills its worker, or exceeds a limit. False for a busy or stopping
/// server.
bool IsKernelsFault(const absl::Status& status);

/// True for a kernel's failure that may not recur: a limit exceeded on a busy machine, or a worker
/// that died, perhaps for another reason.
bool MayPass(const absl::Status& status);

}  // namespace fusion
