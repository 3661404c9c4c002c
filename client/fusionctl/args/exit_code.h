#pragma once

#include "client/fusionctl/args/arguments.h"
#include "core/base/status.h"

namespace fusion {

/// The same message as InvalidArgument: what is wrong with files of the caller is bad input, which
/// code the reader chose for it or not.
absl::Status BadInput(const absl::Status& status);
/// The same of a file that was read; that there is no memory for it stays what it is.
absl::Status BadFile(const absl::Status& status);
/// Whose fault an error is.
ExitCode ExitCodeOf(const absl::Status& status);

}  // namespace fusion
