#pragma once

#include "client/fusionctl/args/arguments.h"
#include "core/base/status.h"

namespace fusion {

/// Converts an error about the user's files to InvalidArgument with the same message, unless its
/// exit code is kExitBadInput already. OK and errors of writing (IsUnwritable) stay unchanged. In
/// this program "bad input" means a status whose exit code is kExitBadInput.
absl::Status BadInput(const absl::Status& status);
/// The same for an error of reading a file; ResourceExhausted (no memory) stays unchanged too.
absl::Status BadFile(const absl::Status& status);
/// The exit code for the result of a command.
ExitCode ExitCodeOf(const absl::Status& status);

}  // namespace fusion
